-- Delayed attempts of lanes that are due, without a lock: the lane is locked first.
-- $1 limit; by delayed_wake_at
select delayed.run, delayed.line, delayed.attempt, delayed.spent, delayed.suspicion, runs.key
from refrain_delayed as delayed join refrain_runs as runs on runs.id = delayed.run
where delayed.wake_at <= (select now from refrain_clock) and delayed.lane
order by delayed.wake_at, delayed.run
limit $1
