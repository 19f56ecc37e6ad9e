-- Which slots of a job are taken; the job is held.
-- $1 job
select slot from refrain_slots where job = $1 order by slot
