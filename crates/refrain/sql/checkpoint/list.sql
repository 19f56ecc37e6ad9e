-- The checkpoints of a job, in every scope, and who moved each of them last; nobody, if a person did.
-- $1 project, $2 job, $3 limit; by ledgers_are_unique and the primary key
select ledgers.id as ledger, ledgers.scope, checkpoints.name, checkpoints.position, checkpoints.at,
    checkpoints.attempt, fences.run
from refrain_ledgers as ledgers
join refrain_checkpoints as checkpoints on checkpoints.ledger = ledgers.id
left join refrain_fences as fences on fences.id = checkpoints.fence
where ledgers.project = $1 and ledgers.job = $2 and ledgers.window_start = ''
order by ledgers.scope, checkpoints.name
limit $3
