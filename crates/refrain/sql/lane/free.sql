-- Nobody waits: the lane is free.
-- $1 job, $2 scope, $3 run
delete from refrain_lanes where job = $1 and scope = $2 and run = $3
