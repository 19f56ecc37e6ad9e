-- A claim does not hold its worker.
select id from refrain_workers where id = $1 and expires_at > (select now from refrain_clock)
