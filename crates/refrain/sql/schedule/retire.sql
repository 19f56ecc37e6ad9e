-- Retires the schedule of a job without a timetable: it opens nothing.
-- $1 job
update refrain_schedules set next_at = null where job = $1 and next_at is not null
