-- Returns attempts unchanged: the next worker gets the same number.
-- $1… rows; by the primary key
update refrain_queue set lease = null
where (line, run, lease, attempt) in (
    select r.line, r.run, r.lease, r.attempt
    from rows(1: line integer, run integer, lease integer, attempt integer) as r
)
returning run
