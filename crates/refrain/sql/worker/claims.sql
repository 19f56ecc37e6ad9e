-- Holds a worker that is about to claim, beside its heartbeat and its other claims. Until this transaction is over,
-- statements that lock the row for update wait, or pass it over: they see every lease of this worker, or none is coming.
-- A worker of a store that is in doubt about itself claims nothing. A worker that has expired claims nothing: a rescuer may have looked at its leases already. $1 worker
select id, (select now from refrain_clock) as now, (select doubt from refrain_store) as doubt from refrain_workers where id = $1 and expires_at > (select now from refrain_clock) /*for key share*/
