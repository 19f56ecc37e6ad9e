-- Writes the first position of a checkpoint. No row: another run has created it.
-- $1 ledger, $2 name, $3 position, $4 fence, $5 attempt, $6 nonce; by the primary key
insert into refrain_checkpoints (ledger, name, position, fence, attempt, nonce, at)
values ($1, $2, $3, $4, $5, $6, (select now from refrain_clock))
on conflict (ledger, name) do nothing
