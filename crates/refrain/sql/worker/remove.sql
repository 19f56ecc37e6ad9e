-- Removes a worker that holds nothing any more.
-- $1 worker
delete from refrain_workers
where id = $1 and not exists (select 1 from refrain_leases where worker = $1)
    and not exists (select 1 from refrain_effects where holder = $1)
