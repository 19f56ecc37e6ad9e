-- The history of a run: every attempt but the last. Rows from before schema 6 have no `failure`.
-- $1 run
select number, ended, started_at, ended_at, worker, message, coalesce(reason, failure) as reason
from refrain_attempts where run = $1 order by number
