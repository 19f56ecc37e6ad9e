-- Runs that wait for a lane that is free.
-- $1 limit; a scan
select waits.run from refrain_lane_waits as waits
where not exists (select 1 from refrain_lanes as lanes where lanes.job = waits.job and lanes.scope = waits.scope)
order by waits.run
limit $1
