-- The front of a line, not held.
select queue.run, queue.attempt, queue.nonce, queue.spent, queue.suspicion, queue.lane, runs.key, runs.window_start,
    runs.window_end, runs.payload, runs.version, runs.redo
from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
where queue.line = $1 and queue.lease is null
order by queue.run
limit $2
