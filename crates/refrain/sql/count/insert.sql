-- Writes down what became of the units of attempts. Once: an ending that is said again has them there.
-- $1… rows; by the primary key
insert into refrain_counts (run, attempt, processed, skipped, deduplicated, failed)
select r.run, r.attempt, r.processed, r.skipped, r.deduplicated, r.failed
from rows(1: run integer, attempt integer, processed integer, skipped integer, deduplicated integer, failed integer) as r
where true
order by r.run
on conflict (run, attempt) do nothing
