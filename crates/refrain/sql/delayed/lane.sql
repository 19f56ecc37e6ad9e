-- The lane that a delayed attempt enters when it is due: its line and its run's key; no row if it has no lane.
-- $1 run
select delayed.line, runs.key
from refrain_delayed as delayed join refrain_runs as runs on runs.id = delayed.run
where delayed.run = $1 and delayed.lane
