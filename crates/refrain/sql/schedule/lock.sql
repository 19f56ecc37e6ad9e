-- Locks a schedule for one tick; no row if another scheduler has locked it.
-- $1 job
select s.covered, j.paused_at
from refrain_schedules as s join refrain_jobs as j on j.id = s.job
where s.job = $1 /*for update of s skip locked*/
