-- The leases of a worker, locked.
-- $1 worker; by leases_worker
select id, line, first_run, last_run from refrain_leases where worker = $1 order by id /*for update*/
