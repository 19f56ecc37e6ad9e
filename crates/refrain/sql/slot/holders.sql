-- The runs that hold the slots of a job.
-- $1 job, $2 limit; by the primary key
select run from refrain_slots where job = $1 order by slot limit $2
