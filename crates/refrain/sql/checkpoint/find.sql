-- The position of a checkpoint, and the attempt that moved it there.
-- $1 ledger, $2 name; by the primary key
select position, fence, attempt, nonce from refrain_checkpoints where ledger = $1 and name = $2
