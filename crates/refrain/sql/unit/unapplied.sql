-- Units that are not applied, from one key to another.
-- $1 ledger, $2 first key, $3 last key; by units_unsettled
select key from refrain_units
where ledger = $1 and status <> 'applied' and key >= $2 and key <= $3
order by key
