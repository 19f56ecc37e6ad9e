-- Workers that have not expired and whose processes are named with this beginning: those of one machine.
-- $1 beginning, $2 limit
select id, process from refrain_workers
where substr(process, 1, length($1)) = $1 and expires_at > (select now from refrain_clock)
order by id
limit $2
