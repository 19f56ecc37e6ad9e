-- How an attempt ended that was not the last one.
-- $1 worker, $2… rows
insert into refrain_attempts (run, number, ended, started_at, ended_at, worker, message, reason)
select r.run, r.number, r.ended, r.started_at, (select now from refrain_clock), $1, r.message, r.reason
from rows(2: run integer, number integer, ended text, started_at integer, message text, reason text) as r
where true
order by r.run
on conflict do nothing
