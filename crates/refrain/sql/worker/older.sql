-- Live workers that support only an older schema than this.
-- $1 schema of the store, $2 schema of ledgers
select id, process from refrain_workers
where expires_at > (select now from refrain_clock) and (coalesce(schema, 0) < $1 or coalesce(ledger_schema, 0) < $2)
order by id
