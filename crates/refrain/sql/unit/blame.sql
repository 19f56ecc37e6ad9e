-- Parks units before they are tried together, each with its input: if the worker dies, these are the suspects. Applied content
-- stays recorded. Fewer rows than given: one was applied meanwhile, or newer content was, or it is in doubt.
-- $1 ledger, $2 version, $3 fence, $4 attempt, $5 the mark of the trial, below zero, $6 message, $7 the position that the source was
-- read from, if a checkpoint has one, $8 the attempt with which a redo began, or null, $9 nonce, $10 status, $11… rows; by the primary key
insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status, input, message, place)
select $1, r.key, r.fingerprint, r.ordinal, $3, (select now from refrain_clock), $2, $4, $9, $5, false, $10, r.input, $6, $7
from rows(11: key text, fingerprint integer, ordinal integer, input text) as r
where true
/*order by r.key*/
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
        or (cast($8 as integer) is not null
            and (refrain_units.fence is distinct from excluded.fence or coalesce(refrain_units.attempt < $8, true))))
    and refrain_units.version <= excluded.version
    and coalesce(refrain_units.ordinal <= excluded.ordinal, true)
    and (refrain_units.sent is null or refrain_units.status <> 'parked'
        or (refrain_units.fence = excluded.fence and refrain_units.attempt = excluded.attempt
            and refrain_units.nonce = excluded.nonce))
