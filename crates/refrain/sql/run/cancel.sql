-- Ends a run whose attempt had not begun. One that had an outcome keeps it.
-- $1 run, $2 attempt, $3 message
update refrain_runs
set open = false, attempt = $2, ended_at = (select now from refrain_clock),
    outcome = coalesce(outcome, 'cancelled'), message = case when outcome is null then $3 else message end
where id = $1 and open
