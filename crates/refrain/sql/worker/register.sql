-- A worker, alive for so long.
-- $1 process, $2 microseconds
insert into refrain_workers (process, started_at, expires_at)
values ($1, (select now from refrain_clock), (select now from refrain_clock) + $2)
returning id
