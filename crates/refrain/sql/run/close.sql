-- Ends runs with their running attempts. A redo that is not finished stays, so that a later attempt goes on with it.
-- Only an open run is changed; whether the attempt still held it, the queue says right after.
-- `reason` is for binaries before schema 6, which cannot read `failure`.
-- $1 worker, $2… rows
update refrain_runs as runs
set open = false, outcome = r.outcome, attempt = r.attempt, version = r.version, started_at = r.started_at,
    ended_at = (select now from refrain_clock), worker = $1, message = r.message, reason = r.reason, failure = r.failure,
    redo = case when r.outcome in ('done', 'waiting', 'cancelled') then null else redo end
from rows(2: run integer, attempt integer, version integer, outcome text, started_at integer, message text, reason text, failure text) as r
where runs.id = r.run and runs.open
