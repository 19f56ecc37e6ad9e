-- Runs of jobs that do not exist: no list shows them.
-- $1 limit; a scan
select runs.id as run from refrain_runs as runs
where not exists (select 1 from refrain_jobs as jobs where jobs.id = runs.job)
order by runs.id
limit $1
