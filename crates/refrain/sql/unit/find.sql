-- The entries of units, or `absent`. Without a lock: an entry that decides something is compared again when it is written.
-- A left join always starts with the list. For an inner one, PostgreSQL would cache the plan that it made when the ledger was
-- empty, which scans the whole ledger for every list.
-- $1 ledger, $2… rows; by the primary key
select r.key, units.fingerprint, units.ordinal, units.fence, cast(coalesce(units.version, 0) as bigint) as version, units.attempt, units.nonce,
    coalesce(units.failures, 0) as failures, coalesce(units.written, false) as written,
    coalesce(units.status, 'absent') as status, units.input is not null as kept,
    coalesce(units.status = 'parked' and units.sent is not null, false) as sent,
    units.sent is not null as unanswered, units.at, units.applied_version, units.applied_fingerprint, units.applied_at,
    units.applied_fence, units.applied_attempt
from rows(2: key text) as r
left join refrain_units as units on units.ledger = $1 and units.key = r.key
