-- The number of a ledger.
-- $1 project, $2 job, $3 scope, $4 window_start; by ledgers_are_unique
select id from refrain_ledgers where project = $1 and job = $2 and scope = $3 and window_start = $4
