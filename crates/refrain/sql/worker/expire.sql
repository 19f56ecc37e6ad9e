-- A worker that leaves by itself, or that has been ended.
-- $1 worker
update refrain_workers set expires_at = 0 where id = $1
