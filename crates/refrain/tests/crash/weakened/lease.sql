-- Puts a lease on runs of a line, whoever has them.
update refrain_queue set lease = $1
where line = $2 and run in (select r.run from rows(3: run integer) as r)
