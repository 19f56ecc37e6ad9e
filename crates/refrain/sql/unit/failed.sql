-- What units that failed were given; also those that were parked only in advance. Records that were no units are not among them.
-- $1 ledger, $2 limit, $3 the key after which to begin; by units_unsettled
select key, input from refrain_units
where ledger = $1 and status <> 'applied' and input is not null and fingerprint is not null
    and (status = 'failed' or failures < 0)
    and key > $3
order by key limit $2
