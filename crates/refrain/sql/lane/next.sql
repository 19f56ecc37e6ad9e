-- The first run that waits for a lane.
-- $1 job, $2 scope; by the primary key
select run, key, line, attempt, spent, suspicion from refrain_lane_waits
where job = $1 and scope = $2
order by key
limit 1
