-- Cancels a run whose attempt has not begun. A run that had an outcome keeps it, with the time and the message of it.
-- $1 run, $2 attempt, $3 message, $4 outcome: the one it had, or cancelled
update refrain_runs
set open = false, attempt = $2, redo = null, outcome = $4,
    ended_at = case when outcome is null then (select now from refrain_clock) else ended_at end,
    message = case when outcome is null then $3 else message end
where id = $1 and open
