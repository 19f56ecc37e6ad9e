-- The runs of a job against the order of their keys, page by page: the newest windows first.
-- $1 job, $2 the last key of the page before, $3 limit; by runs_are_unique
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key < $2
order by runs.key desc
limit $3
