-- The entries of units that must be judged; `absent`: there is none. Units that are not returned are certainly done: applied, in
-- this version and content, with the same order or none on either side.
-- $1 ledger, $2 version, $3… rows; by the primary key
select r.key, units.fingerprint, units.ordinal, units.fence, cast(coalesce(units.version, 0) as bigint) as version, units.attempt, units.nonce,
    coalesce(units.failures, 0) as failures, coalesce(units.written, false) as written,
    coalesce(units.status, 'absent') as status, units.input is not null as kept,
    coalesce(units.status = 'parked' and units.sent is not null, false) as sent,
    units.sent is not null as unanswered, units.at, units.applied_version, units.applied_fingerprint, units.applied_at,
    units.applied_fence, units.applied_attempt
from rows(3: key text, fingerprint integer, ordinal integer) as r
left join refrain_units as units on units.ledger = $1 and units.key = r.key
where units.status is distinct from 'applied'
    or units.failures < 0
    or units.version <> $2
    or units.fingerprint is distinct from r.fingerprint
    or (units.ordinal is not null and units.ordinal <> r.ordinal)
