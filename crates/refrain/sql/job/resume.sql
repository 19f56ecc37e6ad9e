-- Resumes a job.
-- $1 job
update refrain_jobs set paused_at = null where id = $1 and paused_at is not null
