-- Removes a job that never had a run, so that another one can take its name.
-- $1 job; by the primary key
delete from refrain_jobs where id = $1
