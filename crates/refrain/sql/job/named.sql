-- The job that has this name, or had it.
-- $1 name; by the primary key
select jobs.id, jobs.name, jobs.identity, jobs.from_file
from refrain_job_names as names join refrain_jobs as jobs on jobs.id = names.job
where names.name = $1
