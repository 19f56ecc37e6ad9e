-- Takes free lanes, and locks the others until the end of this transaction: a run that leaves one meanwhile sees who waits.
-- $1 job, $2… rows
insert into refrain_lanes as held (job, scope, run)
select $1, r.scope, r.run from rows(2: scope text, run integer) as r where true order by r.scope
on conflict (job, scope) do update set run = held.run
returning scope, run
