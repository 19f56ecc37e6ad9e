-- A person says that a run whose command was cut off is done: it is, as by an attempt that no worker made.
-- $1 run, $2 its last attempt, $3 version, $4 message
update refrain_runs
set attempt = attempt + 1, outcome = 'done', version = coalesce($3, version), started_at = null,
    ended_at = (select now from refrain_clock), worker = null, message = $4, reason = null, redo = null
where id = $1 and not open and attempt = $2
