-- The workers that are alive, or whose runs were not taken over yet, and how many runs each holds.
-- $1 limit; leases by leases_worker, the queue by its primary key
select workers.id, workers.process, workers.started_at, workers.expires_at,
    (select count(*) from refrain_leases as leases join refrain_queue as queue
        on queue.line = leases.line and queue.run between leases.first_run and leases.last_run
            and queue.lease = leases.id
     where leases.worker = workers.id) as runs
from refrain_workers as workers
order by workers.id
limit $1
