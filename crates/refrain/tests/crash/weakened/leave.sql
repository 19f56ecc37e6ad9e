-- Takes runs out of the queue, whichever worker holds them.
delete from refrain_queue
where (line, run) in (
    select r.line, r.run from rows(1: line integer, run integer, lease integer, attempt integer) as r
)
