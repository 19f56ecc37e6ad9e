-- Records requests for existing runs: each is a dedupe event with the first run. A request with another payload under the same
-- key is marked.
-- The job is a column of the rows: with one argument for all rows SQLite would read every run of the job.
-- $1 the command, $2… rows; by runs_are_unique
insert into refrain_dedupes (run, at, asked)
select runs.id, (select now from refrain_clock),
    case when r.payload is null or r.payload = runs.payload then $1 else $1 || ' with another payload' end
from rows(2: job integer, key text, payload text) as r join refrain_runs as runs on runs.job = r.job and runs.key = r.key
order by runs.id
