-- A name belongs to a job for ever: the job that has it, or had it before it was renamed.
-- $1 name, $2 job; by the primary key
insert into refrain_job_names (name, job) values ($1, $2) on conflict (name) do nothing
