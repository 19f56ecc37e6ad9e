-- Removes the names of a job that is removed.
-- $1 job
delete from refrain_job_names where job = $1
