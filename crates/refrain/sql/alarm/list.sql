-- The latest alarms, newest first.
-- $1 limit; by the primary key
select alarms.kind, jobs.name as job, alarms.at, alarms.subject, alarms.message
from refrain_alarms as alarms left join refrain_jobs as jobs on jobs.id = alarms.job
order by alarms.id desc
limit $1
