-- The front of a line, also of those who have a lease: what a second reader sees before the first one has written.
select queue.run, queue.attempt, queue.nonce, queue.spent, queue.suspicion, queue.lane, runs.key, runs.window_start,
    runs.window_end, runs.payload, runs.version, runs.redo
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $1
order by queue.run
limit $2
