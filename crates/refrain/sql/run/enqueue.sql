-- Opens runs of callers' keys. Rows that are returned are new; the others existed already.
-- $1 job, $2… rows; by runs_are_unique
insert into refrain_runs (job, attempt, opened_at, open, key, payload)
select $1, 1, (select now from refrain_clock), true, r.key, r.payload
from rows(2: key text, payload text) as r
where true
order by r.key
on conflict (job, key) do nothing
returning id, key
