-- Units that an operator wants retried, and the position that the source was read from when they were met. Their failures
-- are zero; all others have at least one.
-- $1 ledger, $2 limit; by units_unsettled
select key, place from refrain_units
where ledger = $1 and status <> 'applied' and status = 'failed' and failures = 0 and place is not null
order by key limit $2
