-- Workers that have not expired and whose process names have this prefix: those of one machine.
-- $1 prefix, $2 limit
select id, process, sends from refrain_workers
where substr(process, 1, length($1)) = $1 and expires_at > (select now from refrain_clock)
order by id
limit $2
