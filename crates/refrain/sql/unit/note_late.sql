-- Like confirm_late.sql, if the unit has a later request: the entry says that this request was done, too.
-- $1 ledger, $2 key, $3 fence, $4 attempt, $5 version, $6 fingerprint, $7 nonce, $8 message; by the primary key
update refrain_units set message = $8
where ledger = $1 and key = $2 and version = $5 and fingerprint is not distinct from $6
    and (fence is distinct from $3 or attempt is distinct from $4 or nonce is distinct from $7)
