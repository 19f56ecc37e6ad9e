-- Claims a key, in somebody's own transaction. No row: it was claimed before. Who comes at the same time waits here until
-- the other has committed or rolled back.
-- $1 ledger, $2 key, $3 fingerprint; by the primary key
insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, status)
values ($1, $2, $3, (select now from refrain_clock), 1, 0, true, 'applied')
on conflict (ledger, key) do nothing
