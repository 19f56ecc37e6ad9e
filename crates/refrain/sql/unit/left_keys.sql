-- Units that a run has left unapplied, permanent or of its window.
-- $1 project, $2 job, $3 run, $4 scope, $5 start of the window, $6 limit; by ledgers_are_unique and units_unsettled
select units.key, units.status, coalesce(units.status = 'parked' and units.sent is not null, false) as sent
from refrain_ledgers as ledgers join refrain_units as units on units.ledger = ledgers.id and units.status <> 'applied'
where ledgers.project = $1 and ledgers.job = $2 and ledgers.scope = $4 and ledgers.window_start in ('', $5)
    and units.fence = (select id from refrain_fences where project = $1 and job = $2 and run = $3)
order by units.key, ledgers.id
limit $6
