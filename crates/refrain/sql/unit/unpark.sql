-- A person wants a parked unit tried again, with all its tries; also if it is in doubt.
-- $1 project, $2 job, $3 key; by ledgers_are_unique and the primary key
update refrain_units set status = 'failed', failures = 0, sent = null
where key = $3 and status = 'parked'
    and ledger in (select id from refrain_ledgers where project = $1 and job = $2)
