-- Who claimed keys, and when.
-- $1… rows; by the primary key
select units.ledger, units.key, units.at, units.fingerprint, units.attempt, units.fence, units.status, fences.run
from rows(1: ledger integer, key text) as r
join refrain_units as units on units.ledger = r.ledger and units.key = r.key
left join refrain_fences as fences on fences.id = units.fence
