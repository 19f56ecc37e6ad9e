-- Ends a run whose attempt had not begun. One that had an outcome keeps it, and when it came to it.
-- $1 run, $2 attempt, $3 message
update refrain_runs
set open = false, attempt = $2, redo = null, outcome = coalesce(outcome, 'cancelled'),
    ended_at = case when outcome is null then (select now from refrain_clock) else ended_at end,
    message = case when outcome is null then $3 else message end
where id = $1 and open
