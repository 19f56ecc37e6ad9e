-- Lanes held by runs that are not open: whoever waits there waits for ever.
-- $1 limit; a scan
select lanes.run from refrain_lanes as lanes
left join refrain_runs as runs on runs.id = lanes.run
where runs.id is null or not runs.open
order by lanes.run
limit $1
