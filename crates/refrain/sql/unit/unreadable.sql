-- Whether a ledger has malformed records.
-- $1 ledger, $2 first key, $3 the key after the last; by units_unsettled
select key from refrain_units
where ledger = $1 and status <> 'applied' and key >= $2 and key < $3
order by key limit 1
