-- Puts a lease on runs of a line that have none.
-- $1 lease, $2 line, $3… rows; by the primary key
update refrain_queue as queue set lease = $1
from rows(3: run integer) as r
where queue.line = $2 and queue.run = r.run and queue.lease is null
