-- The run that holds a lane.
-- $1 job, $2 scope
select run from refrain_lanes where job = $1 and scope = $2
