-- The runs of a lease.
-- $1 lease, $2 line, $3 first run, $4 last run; by the primary key
select columns(claimed)
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $2 and queue.run between $3 and $4 and queue.lease = $1
order by queue.run
