-- Runs under a lease that does not exist: no worker will end them or take them over.
-- $1 limit; a scan
select queue.run from refrain_queue as queue
where queue.lease is not null and not exists (select 1 from refrain_leases as leases where leases.id = queue.lease)
order by queue.run
limit $1
