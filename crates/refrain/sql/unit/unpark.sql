-- An operator retries a unit that is not applied, with all its tries; even if it is parked or in doubt. The time when it was first
-- sent stays recorded: a receiver that remembers its key counts from there. Content that was applied before a request without
-- an answer may have been changed by it, and does not count as applied any more.
-- $1 project, $2 job, $3 key, $4 scope or null for all, $5 start of the window, $6 status; by ledgers_are_unique and the primary key
update refrain_units set status = $6, failures = 0,
    message = case when sent is null then message else 'a person had it sent again' end,
    applied_version = case when sent is null then applied_version end
where key = $3 and status <> 'applied'
    and ledger in (select id from refrain_ledgers where project = $1 and job = $2
        and (cast($4 as text) is null or (scope = $4 and window_start in ('', $5))))
