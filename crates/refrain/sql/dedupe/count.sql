-- How many dedupes each job had in each minute, for a range of them, and the first of those.
-- $1 and $2 first and last dedupe of the range; by the primary key, runs by theirs
select counted.job, jobs.name, counted.minute, counted.dedupes, counted.first
from (
    select runs.job, dedupes.at / 60000000 as minute, count(*) as dedupes, min(dedupes.id) as first
    from refrain_dedupes as dedupes join refrain_runs as runs on runs.id = dedupes.run
    where dedupes.id between $1 and $2
    group by runs.job, dedupes.at / 60000000
) as counted join refrain_jobs as jobs on jobs.id = counted.job
