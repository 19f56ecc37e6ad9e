-- Workers that have expired.
-- $1 limit
select id, process, sends from refrain_workers
where expires_at <= (select now from refrain_clock)
order by id
limit $1
