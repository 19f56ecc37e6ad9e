-- Registers a worker, alive for the given time.
-- $1 process, $2 microseconds, $3 schema of the store that its release supports, $4 schema of ledgers
insert into refrain_workers (process, started_at, expires_at, schema, ledger_schema)
values ($1, (select now from refrain_clock), (select now from refrain_clock) + $2, $3, $4)
returning id
