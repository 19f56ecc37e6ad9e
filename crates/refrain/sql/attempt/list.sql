-- The history of a run: every attempt but the last.
-- $1 run
select number, ended, started_at, ended_at, worker, message, reason from refrain_attempts where run = $1 order by number
