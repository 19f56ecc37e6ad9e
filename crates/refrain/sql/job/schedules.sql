-- All jobs that were ever registered, each with the time when it has something to open.
select jobs.id, jobs.name, jobs.paused_at, schedules.next_at,
    (select count(*) from refrain_revisions as revisions where revisions.job = jobs.id) as revisions
from refrain_jobs as jobs left join refrain_schedules as schedules on schedules.job = jobs.id
order by jobs.name
