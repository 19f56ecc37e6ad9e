-- Units of a run that are in doubt, in the order of keys, with their input and the time since they were first sent.
-- $1 ledger, $2 fence, $3 the key before the first, $4 version, $5 limit; by units_unsettled
select key, input, (select now from refrain_clock) - sent as since from refrain_units
where ledger = $1 and status <> 'applied' and status = 'parked' and sent is not null and fence = $2 and key > $3 and version = $4
order by key limit $5
