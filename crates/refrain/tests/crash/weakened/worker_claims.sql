-- A claim does not hold its worker.
select id, (select now from refrain_clock) as now, cast(null as text) as doubt from refrain_workers where id = $1 and expires_at > (select now from refrain_clock)
