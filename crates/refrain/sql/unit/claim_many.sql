-- Claims keys for several callers. Keys that are returned are claimed; the others were claimed before.
-- $1 status, $2… rows; by the primary key
insert into refrain_units (ledger, key, fingerprint, fence, at, version, attempt, nonce, failures, written, status)
select r.ledger, r.key, r.fingerprint, r.fence, (select now from refrain_clock), r.version, r.attempt, r.nonce, 0, true, $1
from rows(2: ledger integer, key text, fingerprint integer, fence integer, attempt integer, nonce integer, version integer) as r
where true
order by r.ledger, r.key
on conflict (ledger, key) do nothing
returning ledger, key, at
