-- Dedupes of the units of some runs.
-- $1… rows; by the primary key
select dedupes.run, dedupes.reason, dedupes.keys
from rows(1: run integer) as r join refrain_unit_dedupes as dedupes on dedupes.run = r.run
order by dedupes.run desc, dedupes.attempt desc, dedupes.reason
