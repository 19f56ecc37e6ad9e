-- Removes delayed attempts.
-- $1… rows
delete from refrain_delayed where run in (select r.run from rows(1: run integer) as r)
