-- The earlier claim of a key: by which run, and when.
-- $1 ledger, $2 key; by the primary key
select units.at, units.fingerprint, units.status,
    (select fences.run from refrain_fences as fences where fences.id = units.fence) as run
from refrain_units as units
where units.ledger = $1 and units.key = $2
