-- Locks a worker that is about to claim; its heartbeat and its other claims do not wait. Until this transaction has ended,
-- statements that lock the row for update wait or skip it: they see every lease of this worker, or none is coming.
-- A worker of a store in doubt claims nothing. A worker that has expired claims nothing: a rescuer may have read its leases already. $1 worker
select id, (select now from refrain_clock) as now, (select doubt from refrain_store) as doubt from refrain_workers where id = $1 and expires_at > (select now from refrain_clock) /*for key share*/
