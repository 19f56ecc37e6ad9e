-- Expires a worker that leaves or that was stopped.
-- $1 worker
update refrain_workers set expires_at = 0 where id = $1
