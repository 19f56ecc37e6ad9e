-- An operator confirms that the work for a unit in doubt was done.
-- $1 project, $2 job, $3 key, $4 scope or null for all, $5 start of the window, $6 status; by ledgers_are_unique and the primary key
update refrain_units
set status = $6, written = true, failures = 0, input = null, message = null, sent = null,
    applied_version = null, applied_fingerprint = null, applied_at = null, applied_fence = null, applied_attempt = null,
    applied_nonce = null
where key = $3 and status = 'parked' and sent is not null
    and ledger in (select id from refrain_ledgers where project = $1 and job = $2
        and (cast($4 as text) is null or (scope = $4 and window_start in ('', $5))))
