-- Removes the cancellations of runs that have ended.
-- $1… rows
delete from refrain_cancellations where run in (select r.run from rows(1: run integer) as r)
