-- The front of a line: who may begin, held until they have a lease. Whoever another claim holds is passed over.
-- A line of a paused job has no front. $1 line, $2 limit, $3 after this run; by the primary key
select queue.run, queue.attempt, queue.nonce, queue.spent, queue.suspicion, queue.lane, runs.key, runs.window_start,
    runs.window_end, runs.payload, runs.version, runs.redo
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $1 and queue.run > $3 and queue.lease is null
    and not exists (select 1 from refrain_jobs where id = $1 % 4294967296 and paused_at is not null)
order by queue.run
limit $2 /*for update of queue skip locked*/
