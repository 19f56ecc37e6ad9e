-- Workers that are alive.
select id, process from refrain_workers where expires_at > (select now from refrain_clock) order by id
