-- Leaves a unit parked that was blamed in advance and whose worker died.
-- $1 ledger, $2 key, $3 failures; by the primary key
update refrain_units set failures = $3 where ledger = $1 and key = $2 and status = 'parked' and failures < 0
