-- Queues runs that may begin.
-- $1 line, $2… rows
insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
select $1, r.run, r.attempt, r.spent, r.suspicion, r.lane
from rows(2: run integer, attempt integer, spent integer, suspicion integer, lane boolean) as r
where true
order by r.run
