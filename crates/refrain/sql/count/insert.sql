-- Records the counts of units of attempts. Once: when an end is recorded again, they exist already.
-- $1… rows; by the primary key
insert into refrain_counts (run, attempt, processed, skipped, deduplicated, failed)
select r.run, r.attempt, r.processed, r.skipped, r.deduplicated, r.failed
from rows(1: run integer, attempt integer, processed integer, skipped integer, deduplicated integer, failed integer) as r
where true
order by r.run
on conflict (run, attempt) do nothing
