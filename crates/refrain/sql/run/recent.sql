-- The runs of all jobs, those that were opened last first, page by page.
-- $1 the last run of the page before, $2 limit; by the primary key
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.id < $1
order by runs.id desc
limit $2
