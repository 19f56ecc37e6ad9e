-- Takes back the reservation of a unit with which nothing was done, through no fault of its own: it counts as not tried.
-- $1 ledger, $2 key, $3 fence, $4 attempt, $5 fingerprint, $6 nonce, $7 status; by the primary key
update refrain_units set status = $7, attempt = null, nonce = null, sent = null, message = 'nothing was done'
where ledger = $1 and key = $2 and fence = $3 and attempt = $4 and nonce = $6 and sent is not null
    and fingerprint is not distinct from $5
