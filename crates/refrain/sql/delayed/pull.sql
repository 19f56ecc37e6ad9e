-- Removes one delayed attempt.
-- $1 run
delete from refrain_delayed where run = $1 returning run, line, attempt, spent, suspicion
