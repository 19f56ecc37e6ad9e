-- It is known, and recorded with this, how the commands of these attempts ended.
-- $1… rows; by the primary key
delete from refrain_begun
where (run, attempt) in (select r.run, r.attempt from rows(1: run integer, attempt integer) as r)
