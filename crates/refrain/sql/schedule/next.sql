-- When the first schedule has something to open.
-- by schedules_next_at
select min(next_at) as at from refrain_schedules
