-- Gives the lane to the next run.
-- $1 job, $2 scope, $3 run
update refrain_lanes set run = $3 where job = $1 and scope = $2
