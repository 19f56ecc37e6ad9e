-- One run, if it may begin.
-- $1 line, $2 run; by the primary key
select columns(claimed)
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $1 and queue.run = $2 and queue.lease is null /*for update of queue skip locked*/
