-- Holds a worker that is about to claim, beside its heartbeat and its other claims. Until this transaction is over,
-- statements that lock the row for update wait, or pass it over: they see every lease of this worker, or none is coming.
-- A worker that has expired claims nothing: a rescuer may have looked at its leases already. $1 worker
select id from refrain_workers where id = $1 and expires_at > (select now from refrain_clock) /*for key share*/
