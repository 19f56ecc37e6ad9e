-- Records that an interrupted run is done, as an attempt that no worker has made.
-- $1 run, $2 its last attempt, $3 version, $4 message, $5 outcome
update refrain_runs
set attempt = attempt + 1, outcome = $5, version = coalesce($3, version), started_at = null,
    ended_at = (select now from refrain_clock), worker = null, message = $4, reason = null, failure = null, redo = null
where id = $1 and not open and attempt = $2
