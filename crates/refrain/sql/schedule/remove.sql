-- Deletes the schedule of a job that is removed.
-- $1 job; by the primary key
delete from refrain_schedules where job = $1
