-- Records what is known of a unit in doubt, by the attempt that reserved it; even if an operator had it sent again meanwhile.
-- $1 ledger, $2 key, $3 fence, $4 attempt, $5 message, $6 fingerprint, $7 nonce, $8 status; by the primary key
update refrain_units
set status = $8, sent = coalesce(sent, (select now from refrain_clock)), message = $5
where ledger = $1 and key = $2 and fence = $3 and attempt = $4 and nonce = $7 and status <> 'applied'
    and fingerprint is not distinct from $6
