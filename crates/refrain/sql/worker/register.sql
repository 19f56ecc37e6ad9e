-- Registers a worker, alive for the given time.
-- $1 process, $2 microseconds, $3 schema of the store that its release supports, $4 schema of ledgers, $5 whether it only sends effects
insert into refrain_workers (process, started_at, expires_at, schema, ledger_schema, sends)
values ($1, (select now from refrain_clock), (select now from refrain_clock) + $2, $3, $4, $5)
returning id
