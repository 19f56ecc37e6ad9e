-- Frees a lane for which no run waits. The caller has locked its row and compared its holder.
-- $1 job, $2 scope
delete from refrain_lanes where job = $1 and scope = $2
