-- Inserts the schedule of a job that had none.
-- $1 job, $2 next_at
insert into refrain_schedules (job, covered, next_at) values ($1, null, $2) on conflict do nothing
