-- Locks a run, before its row in the queue is changed.
-- $1 run
select columns(run look) from refrain_runs as runs where id = $1 /*for update*/
