-- The checkpoints of a job, in every scope, permanent and per window, the latest window first, with the run that moved each of
-- them last; no run, if an operator did.
-- $1 project, $2 job, $3 start of a window, empty for permanent ones, null for all; $4 limit; by ledgers_are_unique and the primary key
select ledgers.id as ledger, ledgers.scope, ledgers.window_start, checkpoints.name, checkpoints.position, checkpoints.at,
    checkpoints.attempt, fences.run
from refrain_ledgers as ledgers
join refrain_checkpoints as checkpoints on checkpoints.ledger = ledgers.id
left join refrain_fences as fences on fences.id = checkpoints.fence
where ledgers.project = $1 and ledgers.job = $2 and (cast($3 as text) is null or ledgers.window_start = $3)
order by ledgers.window_start = '' desc, ledgers.window_start desc, ledgers.scope, checkpoints.name
limit $4
