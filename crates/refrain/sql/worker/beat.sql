-- Still alive; one that has expired stays expired, for somebody may be taking over already.
-- $1 worker, $2 microseconds
update refrain_workers set expires_at = (select now from refrain_clock) + $2
where id = $1 and expires_at > (select now from refrain_clock)
