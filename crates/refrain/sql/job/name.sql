-- Gives a name to a job for ever: its present name, and those that it had before.
-- $1 name, $2 job; by the primary key
insert into refrain_job_names (name, job) values ($1, $2) on conflict (name) do nothing
