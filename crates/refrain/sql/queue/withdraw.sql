-- Removes an attempt from the queue that no worker has begun.
-- $1… rows; by the primary key
delete from refrain_queue
where (line, run) in (select r.line, r.run from rows(1: line integer, run integer) as r) and lease is null
returning run, attempt, lane
