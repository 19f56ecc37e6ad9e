-- The runs of all jobs, the last opened first, page by page.
-- $1 the last run of the page before, $2 limit; by the primary key
select columns(run)
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.id < $1
order by runs.id desc
limit $2
