-- The time by the clock of the database, in microseconds.
select now from refrain_clock
