-- Attempts outside lanes that are due. Those of a lane are in laned.sql: their lane is locked first.
-- $1 limit; by delayed_wake_at
select run, line, attempt, spent, suspicion from refrain_delayed
where wake_at <= (select now from refrain_clock) and not lane
order by wake_at, run
limit $1 /*for update skip locked*/
