-- Open runs that are not in the queue, not delayed and not waiting for a lane: they would never run.
-- $1 limit; a scan
select runs.id as run from refrain_runs as runs
where runs.open
    and not exists (select 1 from refrain_queue as queue where queue.run = runs.id)
    and not exists (select 1 from refrain_delayed as delayed where delayed.run = runs.id)
    and not exists (select 1 from refrain_lane_waits as waits where waits.run = runs.id)
order by runs.id
limit $1
