-- The timetables of a job, the oldest first.
-- $1 job
select number, schedule, zone, rules, grid, gap, fold, start, from_at, until_at, joins, ticks_after
from refrain_revisions where job = $1 order by number
