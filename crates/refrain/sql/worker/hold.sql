-- Holds an expired worker, so that one rescuer takes over from it.
-- $1 worker
select id from refrain_workers
where id = $1 and expires_at <= (select now from refrain_clock) /*for update skip locked*/
