-- Raises the order of units whose recorded content was seen again with a higher one.
-- $1… rows; by the primary key
update refrain_units as units set ordinal = r.ordinal
from rows(1: ledger integer, key text, fingerprint integer, ordinal integer) as r
where units.ledger = r.ledger and units.key = r.key and units.fingerprint is not distinct from r.fingerprint
    and units.ordinal < r.ordinal and units.status = 'applied'
