-- How attempts ended that were not the last of their run. `reason` is for binaries before schema 6.
-- $1 worker, $2… rows
insert into refrain_attempts (run, number, ended, started_at, ended_at, worker, message, reason, failure)
select r.run, r.number, r.ended, r.started_at, (select now from refrain_clock), $1, r.message, r.reason, r.failure
from rows(2: run integer, number integer, ended text, started_at integer, message text, reason text, failure text) as r
where true
order by r.run
on conflict do nothing
