-- Gives a job its number, once.
-- $1 name, $2 the name under which its units are recorded
insert into refrain_jobs (name, identity) values ($1, $2) on conflict do nothing
