-- An attempt that waits for its time.
-- $1 run
select wake_at, line, attempt, lane from refrain_delayed where run = $1 /*for update*/
