-- The last attempt of a run moves to its history before another one follows.
-- $1 run
insert into refrain_attempts (run, number, ended, started_at, ended_at, worker, message, reason, failure)
select id, attempt, outcome, started_at, coalesce(ended_at, opened_at), worker, message, reason, failure
from refrain_runs where id = $1 and outcome is not null
on conflict do nothing
