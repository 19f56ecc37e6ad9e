-- Somebody asked for runs that are there already: an event of its own, with the one who was first. One who came with
-- something else under the same key is marked.
-- $1 job, $2 who asked, $3… rows; by runs_are_unique
insert into refrain_dedupes (run, at, asked)
select runs.id, (select now from refrain_clock),
    case when r.payload is null or r.payload = runs.payload then $2 else $2 || ' with another payload' end
from rows(3: key text, payload text) as r join refrain_runs as runs on runs.job = $1 and runs.key = r.key
order by runs.id
