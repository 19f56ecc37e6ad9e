-- Holds a worker that has expired, or whose process is known to be gone, so that one rescuer takes over from it. One that
-- has a claim under way is passed over: its lease cannot be seen yet.
-- $1 worker, $2 whether its process is gone
select id from refrain_workers
where id = $1 and (expires_at <= (select now from refrain_clock) or $2) /*for update skip locked*/
