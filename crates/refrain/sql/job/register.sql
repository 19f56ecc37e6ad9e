-- Gives a job its number, once.
-- $1 name
insert into refrain_jobs (name) values ($1) on conflict do nothing
