-- Records that a unit failed, and keeps its input; applied content stays recorded. No row: the same or newer content was applied
-- meanwhile, or the unit of another run is in doubt.
-- $1 ledger, $2 key, $3 version, $4 fence, $5 attempt, $6 fingerprint, $7 ordinal, $8 failures, $9 status, $10 input,
-- $11 message, $12 the attempt with which a redo began, or null, $13 the position that the source was read from, if a checkpoint has one,
-- $14 nonce; by the primary key
insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status, input, message, place)
values ($1, $2, $6, $7, $4, (select now from refrain_clock), $3, $5, $14, $8, false, $9, $10, $11, $13)
on conflict (ledger, key) do update
set fingerprint = excluded.fingerprint, ordinal = coalesce(excluded.ordinal, refrain_units.ordinal),
    fence = excluded.fence, at = excluded.at, version = excluded.version, attempt = excluded.attempt, nonce = excluded.nonce,
    failures = excluded.failures, status = excluded.status, input = excluded.input, message = excluded.message,
    place = coalesce(excluded.place, refrain_units.place),
    applied_version = case when refrain_units.status = 'applied' then refrain_units.version else refrain_units.applied_version end,
    applied_fingerprint =
        case when refrain_units.status = 'applied' then refrain_units.fingerprint else refrain_units.applied_fingerprint end,
    applied_at = case when refrain_units.status = 'applied' then refrain_units.at else refrain_units.applied_at end,
    applied_fence = case when refrain_units.status = 'applied' then refrain_units.fence else refrain_units.applied_fence end,
    applied_attempt = case when refrain_units.status = 'applied' then refrain_units.attempt else refrain_units.applied_attempt end,
    applied_nonce = case when refrain_units.status = 'applied' then refrain_units.nonce else refrain_units.applied_nonce end,
    sent = null
where (refrain_units.status <> 'applied' or refrain_units.version < excluded.version
        or refrain_units.fingerprint is distinct from excluded.fingerprint
        or (cast($12 as integer) is not null
            and (refrain_units.fence is distinct from excluded.fence or coalesce(refrain_units.attempt < $12, true))))
    and refrain_units.version <= excluded.version
    and coalesce(refrain_units.ordinal <= excluded.ordinal, true)
    and (refrain_units.sent is null or refrain_units.status <> 'parked'
        or (refrain_units.fence = excluded.fence and refrain_units.attempt = excluded.attempt
            and refrain_units.nonce = excluded.nonce))
