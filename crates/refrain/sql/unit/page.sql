-- Records a page whose units have no entries of their own: the hash of all of them, and their number.
-- $1 ledger, $2 key, $3 version, $4 fence, $5 attempt, $6 fingerprint, $7 input, $8 nonce, $9 status; by the primary key
insert into refrain_units (ledger, key, fingerprint, fence, at, version, attempt, nonce, failures, written, status, input)
values ($1, $2, $6, $4, (select now from refrain_clock), $3, $5, $8, 0, true, $9, $7)
on conflict (ledger, key) do update
set fingerprint = excluded.fingerprint, fence = excluded.fence, at = excluded.at, version = excluded.version,
    attempt = excluded.attempt, nonce = excluded.nonce, input = excluded.input
