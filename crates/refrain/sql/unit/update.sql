-- Records other content, a higher version, or success after failure, over the entry that was read. Fewer rows than given:
-- another run has changed them since.
-- $1 version, $2 fence, $3 attempt, $4 nonce, $5 status, $6… rows; by the primary key
update refrain_units as units
set fingerprint = r.fingerprint, ordinal = coalesce(r.ordinal, units.ordinal), fence = $2,
    at = (select now from refrain_clock), version = $1, attempt = $3, nonce = $4, failures = 0, written = true,
    status = $5, input = null,
    message = null, place = null, sent = null, applied_version = null, applied_fingerprint = null, applied_at = null,
    applied_fence = null, applied_attempt = null, applied_nonce = null
from rows(6: ledger integer, key text, fingerprint integer, ordinal integer, was_version integer, was_fingerprint integer, was_ordinal integer, was_status text, was_failures integer) as r
where units.ledger = r.ledger and units.key = r.key and units.version = r.was_version
    and units.fingerprint is not distinct from r.was_fingerprint
    and units.ordinal is not distinct from r.was_ordinal and units.status = r.was_status
    and units.failures = r.was_failures
    and (units.sent is null or units.status <> 'parked' or (units.fence = $2 and units.attempt = $3 and units.nonce = $4))
