-- The taken slots of a job; the job is locked.
-- $1 job
select slot from refrain_slots where job = $1 order by slot
