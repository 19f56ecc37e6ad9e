-- Whether a job has ever had a run.
-- $1 job; by runs_are_unique
select 1 as used from refrain_runs where job = $1 limit 1
