-- What is recorded of units. Without a lock: what is decided by it is compared again when it is written.
-- $1 ledger, $2… rows; by the primary key
select units.key, units.fingerprint, units.ordinal, units.fence, units.version, units.attempt, units.failures,
    units.written, units.status, units.input is not null as kept
from rows(2: key text) as r join refrain_units as units on units.ledger = $1 and units.key = r.key
