-- The front of a line: runs that may begin, locked until they have a lease. Runs that another claim has locked are skipped.
-- A line of a paused job has no front. $1 line, $2 limit, $3 after this run, $4 job of the line; by the primary key
select columns(claimed)
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $1 and queue.run > $3 and queue.lease is null
    and not exists (select 1 from refrain_jobs where id = $4 and paused_at is not null)
order by queue.run
limit $2 /*for update of queue skip locked*/
