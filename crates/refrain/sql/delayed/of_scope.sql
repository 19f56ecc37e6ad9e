-- A run of a job and scope that waits for its time.
-- $1 job, $2 scope; all that wait are looked at
select delayed.run
from refrain_delayed as delayed
where delayed.line % 4294967296 = $1
    and (select case when runs.window_start is null then '' else substr(runs.key, 22) end
         from refrain_runs as runs where runs.id = delayed.run) = $2
order by delayed.wake_at, delayed.run
limit 1
