-- What is recorded of units. Without a lock: what is decided by it is compared again when it is written.
-- The ledger is said with each row: known beforehand, it would tempt both planners to go through all of it first.
-- $1… rows; by the primary key
select units.key, units.fingerprint, units.ordinal, units.fence, units.version, units.attempt, units.failures,
    units.written, units.status, units.input is not null as kept
from rows(1: ledger integer, key text) as r
join refrain_units as units on units.ledger = r.ledger and units.key = r.key
