-- The open attempt of a run in the queue: which worker holds it, since when, and until when that worker is registered.
-- $1… rows: the run in each line of its job; by the primary key
select leases.worker, leases.claimed_at, workers.process, workers.expires_at
from rows(1: line integer, run integer) as r
join refrain_queue as queue on queue.line = r.line and queue.run = r.run
join refrain_leases as leases on leases.id = queue.lease
left join refrain_workers as workers on workers.id = leases.worker
