-- The runs of a key, in whichever job.
-- $1 limit, $2… rows: every job with the key; by runs_are_unique
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from rows(2: job integer, key text) as r
join refrain_runs as runs on runs.job = r.job and runs.key = r.key
join refrain_jobs as jobs on jobs.id = runs.job
order by jobs.name
limit $1
