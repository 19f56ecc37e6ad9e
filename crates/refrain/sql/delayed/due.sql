-- Attempts whose time has come.
-- $1 limit; by delayed_wake_at
select run, line, attempt, spent, suspicion, lane from refrain_delayed
where wake_at <= (select now from refrain_clock)
order by wake_at, run
limit $1 /*for update skip locked*/
