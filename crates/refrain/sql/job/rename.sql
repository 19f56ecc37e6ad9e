-- Renames a job, with all its runs.
-- $1 job, $2 its name from now on; by the primary key
update refrain_jobs set name = $2 where id = $1
