-- Units that are not applied and whose input is not kept; without malformed records.
-- $1 ledger, $2 limit; by units_unsettled
select key from refrain_units
where ledger = $1 and status <> 'applied' and input is null and fingerprint is not null
order by key limit $2
