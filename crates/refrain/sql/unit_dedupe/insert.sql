-- Records the units that attempts found already done, by reason.
-- $1… rows; by the primary key
insert into refrain_unit_dedupes (run, attempt, reason, count, keys)
select r.run, r.attempt, r.reason, r.count, r.keys
from rows(1: run integer, attempt integer, reason text, count integer, keys text) as r
where true
order by r.run, r.reason
on conflict (run, attempt, reason) do nothing
