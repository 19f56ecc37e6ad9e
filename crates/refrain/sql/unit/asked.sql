-- Units that a person wants tried again, and where the source was read from when they were met. The failures of all others are
-- counted from one.
-- $1 ledger, $2 limit; by units_unsettled
select key, place from refrain_units
where ledger = $1 and status <> 'applied' and status = 'failed' and failures = 0 and place is not null
order by key limit $2
