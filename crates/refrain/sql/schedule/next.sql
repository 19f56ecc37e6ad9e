-- When the first schedule is due.
-- by schedules_next_at
select min(next_at) as at from refrain_schedules
