-- Who claimed a key, and when.
-- $1 ledger, $2 key; by the primary key
select units.at, units.fingerprint, units.status, fences.run
from refrain_units as units left join refrain_fences as fences on fences.id = units.fence
where units.ledger = $1 and units.key = $2
