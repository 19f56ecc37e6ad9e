-- Removes a run that waits for a lane.
-- $1 job, $2 scope, $3 key
delete from refrain_lane_waits where job = $1 and scope = $2 and key = $3
