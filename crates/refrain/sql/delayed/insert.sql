-- Delays an attempt, by the clock of the database.
-- $1 microseconds from now, $2 run, $3 line, $4 attempt, $5 spent, $6 suspicion, $7 whether it enters a lane then
insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
values ($2, (select now from refrain_clock) + $1, $3, $4, $5, $6, $7)
