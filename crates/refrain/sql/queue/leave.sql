-- Removes attempts from the queue, if they still have the expected lease.
-- $1… rows; by the primary key
delete from refrain_queue
where (line, run, lease, attempt) in (
    select r.line, r.run, r.lease, r.attempt
    from rows(1: line integer, run integer, lease integer, attempt integer) as r
)
