-- The runs of a key, of all jobs.
-- $1 limit, $2… rows: every job with the key; by runs_are_unique
select columns(run)
from rows(2: job integer, key text) as r
join refrain_runs as runs on runs.job = r.job and runs.key = r.key
join refrain_jobs as jobs on jobs.id = runs.job
order by jobs.name
limit $1
