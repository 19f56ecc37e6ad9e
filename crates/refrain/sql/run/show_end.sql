-- How the last attempt of a run ended, and by whom.
-- $1 run
select id, job, key, open, attempt, worker, outcome, reason from refrain_runs where id = $1
