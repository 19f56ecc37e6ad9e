-- Extends the life of a worker; one that has expired stays expired, because a rescuer may already be taking over.
-- $1 worker, $2 microseconds
update refrain_workers set expires_at = (select now from refrain_clock) + $2
where id = $1 and expires_at > (select now from refrain_clock)
