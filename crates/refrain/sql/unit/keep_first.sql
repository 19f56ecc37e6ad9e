-- Units whose row stays whatever came after it: the later content, which failed, is deleted, and the entry describes the first
-- one again. If the first content was not recorded, none is known.
-- `not … =`, because with `<>` SQLite may scan the index of all units that are not applied, and the rows for each.
-- $1 status, $2… rows; by the primary key
update refrain_units as units
set status = $1, fingerprint = units.applied_fingerprint, version = coalesce(units.applied_version, units.version),
    at = coalesce(units.applied_at, units.at), fence = coalesce(units.applied_fence, units.fence),
    attempt = coalesce(units.applied_attempt, units.attempt), nonce = units.applied_nonce, failures = 0, input = null, message = null,
    place = null, applied_version = null, applied_fingerprint = null, applied_at = null, applied_fence = null, applied_attempt = null,
    applied_nonce = null
from rows(2: ledger integer, key text) as r
where units.ledger = r.ledger and units.key = r.key and units.written and not units.status = 'applied' and units.sent is null
