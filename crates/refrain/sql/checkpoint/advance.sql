-- Moves a checkpoint from the position that was read. No row: the position has changed.
-- $1 ledger, $2 name, $3 position, $4 fence, $5 attempt, $6 the position that was read, $7 nonce; by the primary key
update refrain_checkpoints set position = $3, fence = $4, attempt = $5, nonce = $7, at = (select now from refrain_clock)
where ledger = $1 and name = $2 and position = $6
