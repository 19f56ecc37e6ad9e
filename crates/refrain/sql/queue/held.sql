-- All runs that a worker holds.
-- $1 worker; leases by leases_worker, the queue by its primary key
select leases.id as lease, queue.line, columns(claimed)
from refrain_leases as leases
join refrain_queue as queue
    on queue.line = leases.line and queue.run between leases.first_run and leases.last_run
        and queue.lease = leases.id
join refrain_runs as runs on runs.id = queue.run
where leases.worker = $1
order by queue.run
