-- A worker that has expired claims.
select id, (select now from refrain_clock) as now, cast(null as text) as doubt from refrain_workers where id = $1 /*for key share*/
