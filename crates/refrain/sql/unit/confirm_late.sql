-- The answer to a request arrived after a take-over, and says that it was done. Only the reservation of that request is
-- confirmed: a later reservation has replaced it in the row.
-- $1 ledger, $2 key, $3 fence, $4 attempt, $5 version, $6 fingerprint, $7 nonce, $8 status; by the primary key
update refrain_units
set status = $8, written = true, failures = 0, input = null, message = null, sent = null,
    applied_version = null, applied_fingerprint = null, applied_at = null, applied_fence = null, applied_attempt = null,
    applied_nonce = null
where ledger = $1 and key = $2 and fence = $3 and attempt = $4 and nonce = $7 and version = $5 and fingerprint is not distinct from $6
    and status <> 'applied' and sent is not null
