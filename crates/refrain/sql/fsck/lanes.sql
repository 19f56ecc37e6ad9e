-- Lanes held by runs that are not in the queue: a run that waits there waits for ever. A delayed run may hold a lane in a
-- store that an older release wrote; it enters the lane again when it is due.
-- $1 limit; a scan
select lanes.run from refrain_lanes as lanes
left join refrain_runs as runs on runs.id = lanes.run
where runs.id is null or not runs.open
    or (lanes.run not in (select run from refrain_queue) and lanes.run not in (select run from refrain_delayed))
order by lanes.run
limit $1
