-- The runs of a job in the order of their keys, page by page.
-- $1 job, $2 the last key of the page before, $3 limit; by runs_are_unique
select columns(run)
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key > $2
order by runs.key
limit $3
