-- Records what was published, in the transaction that publishes it.
-- $1 ledger, $2 target, $3 mode, $4 rows, $5 fence, $6 attempt, $7 version, $8 nonce; by the primary key
insert into refrain_publishes (ledger, target, mode, rows, fence, attempt, nonce, version, at)
values ($1, $2, $3, $4, $5, $6, $8, $7, (select now from refrain_clock))
on conflict (ledger, target) do update set mode = excluded.mode, rows = excluded.rows, fence = excluded.fence,
    attempt = excluded.attempt, nonce = excluded.nonce, version = excluded.version, at = excluded.at
