-- Runs of neighbouring windows that are expected: not done, skipped or cancelled.
-- $1 job, $2 the key of the first window, $3 a text above the keys of the last one, $4 limit; by runs_are_unique
select columns(run)
from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
where runs.job = $1 and runs.key >= $2 and runs.key < $3
    and (runs.outcome is null or runs.outcome not in ('done', 'waiting', 'skipped', 'cancelled'))
order by runs.key
limit $4
