-- A delayed run of a job and scope.
-- $1 scope, $2… rows: the lines of the job; all delayed attempts are read
select delayed.run
from refrain_delayed as delayed
where delayed.line in (select r.line from rows(2: line integer) as r)
    and (select case when runs.window_start is null then '' else substr(runs.key, 22) end
         from refrain_runs as runs where runs.id = delayed.run) = $1
order by delayed.wake_at, delayed.run
limit 1
