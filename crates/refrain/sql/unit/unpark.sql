-- A person wants a unit tried again that is not applied, with all its tries; also if it is parked or in doubt. When it was
-- first sent stays known: whoever remembers its key counts from there. What was applied before a request whose answer is
-- missing may have been changed by it: it does not count as applied any more.
-- $1 project, $2 job, $3 key, $4 scope or null for all, $5 start of the window; by ledgers_are_unique and the primary key
update refrain_units set status = 'failed', failures = 0,
    message = case when sent is null then message else 'a person had it sent again' end,
    applied_version = case when sent is null then applied_version end
where key = $3 and status <> 'applied'
    and ledger in (select id from refrain_ledgers where project = $1 and job = $2
        and (cast($4 as text) is null or (scope = $4 and window_start in ('', $5))))
