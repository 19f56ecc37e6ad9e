-- Runs that were opened a moment ago, and are passed over after all.
-- $1 message, $2… rows
update refrain_runs as runs
set open = false, outcome = 'skipped', attempt = 0, ended_at = (select now from refrain_clock), message = $1
from rows(2: run integer) as r
where runs.id = r.run
