-- Runs of a job that have ended for a reason which a person may have to look at, in the order of their keys, page by page.
-- $1 job, $2 the last key of the page before, $3 limit; by runs_are_unique
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key > $2 and not runs.open and runs.reason is not null
order by runs.key
limit $3
