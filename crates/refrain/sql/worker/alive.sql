-- Whether a process has a live registration.
-- $1 process
select id from refrain_workers where process = $1 and expires_at > (select now from refrain_clock) limit 1
