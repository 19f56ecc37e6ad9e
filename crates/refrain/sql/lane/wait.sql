-- Adds runs to those that wait for their lane, the oldest window first.
-- $1 job, $2 line, $3… rows
insert into refrain_lane_waits (job, scope, key, run, line, attempt, spent, suspicion)
select $1, r.scope, r.key, r.run, $2, r.attempt, r.spent, r.suspicion
from rows(3: scope text, key text, run integer, attempt integer, spent integer, suspicion integer) as r
where true
order by r.scope, r.key
on conflict do nothing
