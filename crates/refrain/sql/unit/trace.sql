-- A key in all ledgers of a job: in every scope, permanent and per window.
-- $1 project, $2 job, $3 key, $4 limit; by ledgers_are_unique and the primary key
select ledgers.scope, ledgers.window_start, units.key, units.status, cast(units.version as bigint) as version, units.failures, units.at,
    units.attempt, units.input, units.message,
    case when units.status = 'parked' then units.sent end as sent,
    (select fences.run from refrain_fences as fences where fences.id = units.fence) as run
from refrain_ledgers as ledgers
join refrain_units as units on units.ledger = ledgers.id and units.key = $3
where ledgers.project = $1 and ledgers.job = $2
order by ledgers.scope, ledgers.window_start limit $4
