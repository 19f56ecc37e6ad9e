-- Locks a worker that has expired, or whose process is gone, so that one rescuer takes over from it. A worker with a claim in
-- flight is skipped: its lease is not visible yet.
-- $1 worker, $2 whether its process is gone
select id from refrain_workers
where id = $1 and (expires_at <= (select now from refrain_clock) or $2) /*for update skip locked*/
