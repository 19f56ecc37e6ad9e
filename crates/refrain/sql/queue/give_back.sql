-- Gives attempts back whole: the same number, for the next worker.
-- $1… rows; by the primary key
update refrain_queue as queue set lease = null
from rows(1: line integer, run integer, lease integer, attempt integer) as r
where queue.line = r.line and queue.run = r.run and queue.lease = r.lease and queue.attempt = r.attempt
