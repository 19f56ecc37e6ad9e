-- Removes the marks of attempts whose commands have ended; the end is recorded in the same transaction.
-- $1… rows; by the primary key
delete from refrain_begun
where (run, attempt) in (select r.run, r.attempt from rows(1: run integer, attempt integer) as r)
