-- Units that a run has left unapplied in a ledger, and one of them.
-- $1 ledger, $2 fence; by units_unsettled
select count(*) as count, min(key) as first from refrain_units
where ledger = $1 and status <> 'applied' and fence = $2
