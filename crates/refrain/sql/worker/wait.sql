-- Waits for every claim of a worker whose commit is under way: after that its leases are there, or never will be.
-- $1 worker
select id from refrain_workers where id = $1 /*for update*/
