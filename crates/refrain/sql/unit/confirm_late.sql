-- The answer to a request came after another attempt had taken over, and says that it was done. Only what that request has
-- reserved is confirmed: whoever has reserved the unit since stands in the row instead.
-- $1 ledger, $2 key, $3 fence, $4 attempt, $5 version, $6 fingerprint, $7 nonce; by the primary key
update refrain_units
set status = 'applied', written = true, failures = 0, input = null, message = null, sent = null,
    applied_version = null, applied_fingerprint = null, applied_at = null, applied_fence = null, applied_attempt = null,
    applied_nonce = null
where ledger = $1 and key = $2 and fence = $3 and attempt = $4 and nonce = $7 and version = $5 and fingerprint is not distinct from $6
    and status <> 'applied' and sent is not null
