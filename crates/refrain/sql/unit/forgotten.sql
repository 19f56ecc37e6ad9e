-- Parks a unit that a restored store does not know: its work may have been done before the store was restored. No row: the unit
-- has changed since.
-- $1 ledger, $2 key, $3 version, $4 fence, $5 fingerprint, $6 ordinal, $7 input, $8 message, $9 the earliest time it may have been
-- sent, $10 entries recorded before this time are lost, $11 status; by the primary key
insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, failures, written, status, input, message, sent)
values ($1, $2, $5, $6, $4, (select now from refrain_clock), $3, 0, false, $11, $7, $8, $9)
on conflict (ledger, key) do update
set fingerprint = excluded.fingerprint, ordinal = coalesce(excluded.ordinal, refrain_units.ordinal),
    fence = excluded.fence, at = excluded.at, version = excluded.version, attempt = null, nonce = null,
    failures = 0, status = excluded.status, input = excluded.input, message = excluded.message,
    applied_version = case when refrain_units.status = 'applied' then refrain_units.version else refrain_units.applied_version end,
    applied_fingerprint =
        case when refrain_units.status = 'applied' then refrain_units.fingerprint else refrain_units.applied_fingerprint end,
    applied_at = case when refrain_units.status = 'applied' then refrain_units.at else refrain_units.applied_at end,
    applied_fence = case when refrain_units.status = 'applied' then refrain_units.fence else refrain_units.applied_fence end,
    applied_attempt = case when refrain_units.status = 'applied' then refrain_units.attempt else refrain_units.applied_attempt end,
    applied_nonce = case when refrain_units.status = 'applied' then refrain_units.nonce else refrain_units.applied_nonce end,
    sent = coalesce(refrain_units.sent, excluded.sent)
where refrain_units.at < $10
