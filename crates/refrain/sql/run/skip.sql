-- Runs that this transaction has inserted and that are skipped after all.
-- $1 message, $2 outcome, $3… rows
update refrain_runs as runs
set open = false, outcome = $2, attempt = 0, ended_at = (select now from refrain_clock), message = $1
from rows(3: run integer) as r
where runs.id = r.run
