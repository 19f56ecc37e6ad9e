-- Without a constraint, and without a word on what happens to a key that has its run.
insert into refrain_runs (job, attempt, opened_at, open, key, payload)
select $1, 1, (select now from refrain_clock), true, r.key, r.payload
from rows(2: key text, payload text) as r
where true
order by r.key
returning id, key
