-- Records units without an entry. Fewer rows than given: another run was faster.
-- The rows arrive in the order of keys. Only PostgreSQL needs `order by`, because others may insert at the same time; SQLite would
-- sort them again, which takes a third of its time.
-- $1 ledger, $2 version, $3 fence, $4 attempt, $5 nonce, $6 status, $7… rows; by the primary key
insert into refrain_units (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status)
select $1, r.key, r.fingerprint, r.ordinal, $3, (select now from refrain_clock), $2, $4, $5, 0, true, $6
from rows(7: key text, fingerprint integer, ordinal integer) as r
where true
/*order by r.key*/
on conflict (ledger, key) do nothing
