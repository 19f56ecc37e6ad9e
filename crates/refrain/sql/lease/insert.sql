-- Inserts one row for a claimed batch, with the range of its members in the queue. Its worker is locked.
-- $1 lease, $2 worker, $3 line, $4 first run, $5 last run
insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
values ($1, $2, $3, $4, $5, (select now from refrain_clock))
