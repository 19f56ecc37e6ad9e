-- A delayed attempt.
-- $1 run
select wake_at, line, attempt, lane from refrain_delayed where run = $1 /*for update*/
