-- The lane in which an attempt lines up when its time comes: its line and its run's key; none if it has no lane.
-- $1 run
select delayed.line, runs.key
from refrain_delayed as delayed join refrain_runs as runs on runs.id = delayed.run
where delayed.run = $1 and delayed.lane
