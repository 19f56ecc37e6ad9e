-- Frees the slots of runs that have ended.
-- $1… rows
delete from refrain_slots where run in (select r.run from rows(1: run integer) as r)
