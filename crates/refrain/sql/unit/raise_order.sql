-- Units whose content is recorded already, seen again with a higher order.
-- $1 ledger, $2… rows; by the primary key
update refrain_units as units set ordinal = r.ordinal
from rows(2: key text, fingerprint integer, ordinal integer) as r
where units.ledger = $1 and units.key = r.key and units.fingerprint is not distinct from r.fingerprint
    and units.ordinal < r.ordinal
