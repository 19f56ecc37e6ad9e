-- What units that failed were given; also those that were parked only in advance.
-- $1 ledger, $2 limit; by units_unsettled
select key, input from refrain_units
where ledger = $1 and status <> 'applied' and input is not null and (status = 'failed' or failures < 0)
order by key limit $2
