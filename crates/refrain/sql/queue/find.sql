-- The queue positions of runs.
-- $1… rows; by the primary key
select queue.run, queue.line, queue.lease, cast(queue.attempt as bigint) as attempt
from refrain_queue as queue join rows(1: line integer, run integer) as r
    on queue.line = r.line and queue.run = r.run
