-- Leases of workers that do not exist.
-- $1 limit; a scan
select leases.id as run from refrain_leases as leases
where not exists (select 1 from refrain_workers as workers where workers.id = leases.worker)
order by leases.id
limit $1
