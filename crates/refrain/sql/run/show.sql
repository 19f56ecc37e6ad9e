-- A run.
-- $1 run
select columns(run)
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.id = $1
