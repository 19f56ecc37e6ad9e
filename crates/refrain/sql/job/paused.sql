-- When a job was paused, if it is.
-- $1 job
select paused_at from refrain_jobs where id = $1
