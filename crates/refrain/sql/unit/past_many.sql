-- The earlier claims of keys, or `absent`. The list comes first, as in `find.sql`.
-- $1… rows; by the primary key
select r.ledger, r.key, coalesce(units.at, 0) as at, units.fingerprint, units.attempt, units.nonce, units.fence,
    coalesce(units.status, 'absent') as status,
    (select fences.run from refrain_fences as fences where fences.id = units.fence) as run
from rows(1: ledger integer, key text) as r
left join refrain_units as units on units.ledger = r.ledger and units.key = r.key
