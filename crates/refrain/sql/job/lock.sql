-- Locks a job, so that one claim at a time counts its slots.
-- $1 job
select id from refrain_jobs where id = $1 /*for update*/
