-- A run of a scope in a line; a running one first.
-- $1 line, $2 scope; by the primary key
select queue.run, case when queue.lease is null then 0 else 1 end as begun
from refrain_queue as queue
where queue.line = $1
    and (select case when runs.window_start is null then '' else substr(runs.key, 22) end
         from refrain_runs as runs where runs.id = queue.run) = $2
order by begun desc, queue.run
limit 1
