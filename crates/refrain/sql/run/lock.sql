-- Holds a run, before its place in the queue is touched.
-- $1 run
select id, job, key, open, attempt, worker, outcome, reason from refrain_runs where id = $1 /*for update*/
