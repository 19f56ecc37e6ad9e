-- Claims a key in the caller's own transaction. No row: it was claimed before. A concurrent claim waits here until the other
-- transaction has ended.
-- $1 ledger, $2 key, $3 fingerprint, $4 status; by the primary key
insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, status)
values ($1, $2, $3, (select now from refrain_clock), 1, 0, true, $4)
on conflict (ledger, key) do nothing
