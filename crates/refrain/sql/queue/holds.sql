-- Whether an attempt has its place. Without a lock: it is asked for by an attempt that has met a newer one, and whoever queued
-- that has taken the place away before.
-- $1 line, $2 run, $3 lease, $4 attempt; by the primary key
select attempt from refrain_queue where line = $1 and run = $2 and lease = $3 and attempt = $4
