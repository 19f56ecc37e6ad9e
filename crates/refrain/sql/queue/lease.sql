-- Puts a lease on runs of a line that have none.
-- $1 lease, $2 line, $3… rows; by the primary key
update refrain_queue set lease = $1
where line = $2 and run in (select r.run from rows(3: run integer) as r) and lease is null
