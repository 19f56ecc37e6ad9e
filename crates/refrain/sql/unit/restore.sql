-- Units whose applied content came again after a try of other content had failed: the try is removed, and the entry describes
-- the applied content again, with the highest order seen. Fewer rows than given: the entries have changed.
-- If rows are only ever added, content that an older version added counts too.
-- `not … =`: as in keep_first.sql.
-- $1 version, $2 status, $3… rows; by the primary key
update refrain_units as units
set fingerprint = units.applied_fingerprint, version = units.applied_version, at = units.applied_at, fence = units.applied_fence,
    attempt = units.applied_attempt, nonce = units.applied_nonce, ordinal = coalesce(r.ordinal, units.ordinal), failures = 0, written = true,
    status = $2, input = null, message = null, place = null, applied_version = null, applied_fingerprint = null,
    applied_at = null, applied_fence = null, applied_attempt = null, applied_nonce = null
from rows(3: ledger integer, key text, fingerprint integer, ordinal integer, was_version integer, was_fingerprint integer, was_ordinal integer, was_status text, was_failures integer) as r
where units.ledger = r.ledger and units.key = r.key and units.applied_version <= $1
    and units.applied_fingerprint is not distinct from r.fingerprint and not units.status = 'applied' and units.sent is null
    and units.version = r.was_version and units.fingerprint is not distinct from r.was_fingerprint
    and units.ordinal is not distinct from r.was_ordinal and units.status = r.was_status and units.failures = r.was_failures
