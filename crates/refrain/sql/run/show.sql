-- Everything that is recorded of a run.
-- $1 run
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.id = $1
