-- Nobody waits: the lane is free. It is locked, and its holder is known to leave.
-- $1 job, $2 scope
delete from refrain_lanes where job = $1 and scope = $2
