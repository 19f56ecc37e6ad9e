-- Gives attempts back, whichever worker holds them.
update refrain_queue set lease = null
where (line, run) in (
    select r.line, r.run from rows(1: line integer, run integer, lease integer, attempt integer) as r
)
returning run
