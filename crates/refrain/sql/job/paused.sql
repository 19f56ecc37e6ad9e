-- Since when a job is paused, if it is.
-- $1 job
select paused_at from refrain_jobs where id = $1
