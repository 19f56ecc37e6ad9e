-- Holds a schedule for an edit, after whoever has it.
-- $1 job
select s.covered, j.paused_at
from refrain_schedules as s join refrain_jobs as j on j.id = s.job
where s.job = $1 /*for update of s*/
