-- The input of units that failed, including those that were parked only in advance; without malformed records.
-- $1 ledger, $2 limit, $3 the key to begin after; by units_unsettled
select key, input from refrain_units
where ledger = $1 and status <> 'applied' and input is not null and fingerprint is not null
    and (status = 'failed' or failures < 0)
    and key > $3
order by key limit $2
