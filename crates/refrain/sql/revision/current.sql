-- The timetable in force of every job that has one.
select revisions.job, revisions.number, schedule, zone, rules, grid, gap, fold, start, from_at, until_at, joins, ticks_after
from refrain_revisions as revisions join refrain_schedules as schedules on schedules.job = revisions.job
where revisions.until_at is null and schedules.next_at is not null
order by revisions.job
