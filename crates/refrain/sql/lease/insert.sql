-- One row for a claimed batch, with where in the queue its members are. Its worker is held.
-- $1 lease, $2 worker, $3 line, $4 first run, $5 last run
insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
values ($1, $2, $3, $4, $5, (select now from refrain_clock))
