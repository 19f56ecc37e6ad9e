-- Whether an attempt has its queue position. Without a lock: an attempt that has met a newer one asks, and the newer one was
-- queued after the position was taken away.
-- $1 line, $2 run, $3 lease, $4 attempt; by the primary key
select attempt from refrain_queue where line = $1 and run = $2 and lease = $3 and attempt = $4
