-- How long until the first delayed attempt is due, in microseconds.
-- by delayed_wake_at
select min(wake_at) - (select now from refrain_clock) as at from refrain_delayed
