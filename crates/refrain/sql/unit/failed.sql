-- What units that failed were given, after a key.
-- $1 ledger, $2 key, $3 limit; by units_unsettled
select key, input from refrain_units
where ledger = $1 and status <> 'applied' and key > $2 and status = 'failed' and input is not null
order by key limit $3
