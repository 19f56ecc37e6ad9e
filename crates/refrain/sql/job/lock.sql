-- Holds a job, so that its slots are counted by one claim at a time.
-- $1 job
select id from refrain_jobs where id = $1 /*for update*/
