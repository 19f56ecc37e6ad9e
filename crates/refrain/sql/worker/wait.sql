-- Waits for every claim of a worker whose commit is in flight: after that its leases are visible, or will never exist.
-- $1 worker
select id from refrain_workers where id = $1 /*for update*/
