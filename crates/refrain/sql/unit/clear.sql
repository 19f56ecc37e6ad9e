-- Deletes malformed records of earlier readings of a source that has now been read again from the same position.
-- $1 ledger, $2 first key, $3 the key after the last, $4 fence, $5 attempt, $6 nonce, $7 the position, null without a checkpoint; by the
-- primary key
delete from refrain_units
where ledger = $1 and key >= $2 and key < $3 and status <> 'applied' and (place is null or place = $7)
    and (fence is distinct from $4 or attempt is distinct from $5 or nonce is distinct from $6)
