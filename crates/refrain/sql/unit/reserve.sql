-- Reserves a unit before external work that no transaction can take back: from now on it is parked, and stays so if no outcome
-- is recorded. No row: the entry has changed, and another run may be working on it.
-- The time when this content was first sent stays recorded, and so does the applied content.
-- $1 ledger, $2 key, $3 version, $4 fence, $5 attempt, $6 fingerprint, $7 ordinal, $8 failures, $9 input, $10 message,
-- $11… the entry that was read: version, fingerprint, ordinal, status, failures; $16 the longest time since it was first sent;
-- $17 nonce, $18 status; by the primary key
insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status, input, message, sent)
values ($1, $2, $6, $7, $4, (select now from refrain_clock), $3, $5, $17, $8, false, $18, $9, $10,
    (select now from refrain_clock))
on conflict (ledger, key) do update
set fingerprint = excluded.fingerprint, ordinal = coalesce(excluded.ordinal, refrain_units.ordinal),
    fence = excluded.fence, at = excluded.at, version = excluded.version, attempt = excluded.attempt, nonce = excluded.nonce,
    failures = excluded.failures, status = excluded.status, input = excluded.input, message = excluded.message,
    applied_version = case when refrain_units.status = 'applied' then refrain_units.version else refrain_units.applied_version end,
    applied_fingerprint =
        case when refrain_units.status = 'applied' then refrain_units.fingerprint else refrain_units.applied_fingerprint end,
    applied_at = case when refrain_units.status = 'applied' then refrain_units.at else refrain_units.applied_at end,
    applied_fence = case when refrain_units.status = 'applied' then refrain_units.fence else refrain_units.applied_fence end,
    applied_attempt = case when refrain_units.status = 'applied' then refrain_units.attempt else refrain_units.applied_attempt end,
    applied_nonce = case when refrain_units.status = 'applied' then refrain_units.nonce else refrain_units.applied_nonce end,
    sent = case
        when refrain_units.fingerprint is not distinct from excluded.fingerprint
            and refrain_units.version = excluded.version
        then coalesce(refrain_units.sent, excluded.sent)
        else excluded.sent
    end
where refrain_units.version = $11 and refrain_units.fingerprint is not distinct from $12
    and refrain_units.ordinal is not distinct from $13 and refrain_units.status = $14 and refrain_units.failures = $15
    and (refrain_units.sent is null or refrain_units.status <> 'parked'
        or (refrain_units.fence = excluded.fence and refrain_units.sent > (select now from refrain_clock) - $16))
