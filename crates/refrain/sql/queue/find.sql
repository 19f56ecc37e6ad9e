-- Where in the queue a run stands.
-- $1… rows; by the primary key
select queue.line, queue.lease, queue.attempt
from refrain_queue as queue join rows(1: line integer, run integer) as r
    on queue.line = r.line and queue.run = r.run
