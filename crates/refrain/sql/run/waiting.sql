-- Runs of a job that ended for a reason which the operator may have to resolve, in the order of their keys, page by page. Only
-- such reasons are in the column `reason`; the others are in `failure` alone.
-- $1 job, $2 the last key of the page before, $3 limit; by runs_are_unique
select columns(run)
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key > $2 and not runs.open and runs.reason is not null
order by runs.key
limit $3
