-- Queues the first attempts of new runs.
-- $1 line, $2… rows
insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
select $1, r.run, 1, 0, 0, false from rows(2: run integer) as r where true order by r.run
