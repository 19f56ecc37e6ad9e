-- Somebody asked for runs that are there already: an event of its own, with the one who was first.
-- $1 job, $2 who asked, $3… rows; by runs_are_unique
insert into refrain_dedupes (run, at, asked)
select runs.id, (select now from refrain_clock), $2
from rows(3: key text) as r join refrain_runs as runs on runs.job = $1 and runs.key = r.key
order by runs.id
