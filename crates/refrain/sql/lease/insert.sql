-- One row for a claimed batch, with where in the queue its members are. A worker that has expired gets none: whoever
-- takes over from it may have looked at its leases already.
-- $1 lease, $2 worker, $3 line, $4 first run, $5 last run
insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
select $1, workers.id, $3, $4, $5, (select now from refrain_clock)
from refrain_workers as workers
where workers.id = $2 and workers.expires_at > (select now from refrain_clock)
