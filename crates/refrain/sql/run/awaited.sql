-- Runs of neighbouring windows that somebody waits for: not done, and nobody has passed them over or called them off.
-- $1 job, $2 the key of the first window, $3 what is above the keys of the last one, $4 limit; by runs_are_unique
select runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end,
    runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message,
    runs.payload, runs.reason, runs.redo
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key >= $2 and runs.key < $3
    and (runs.outcome is null or runs.outcome not in ('done', 'waiting', 'skipped', 'cancelled'))
order by runs.key
limit $4
