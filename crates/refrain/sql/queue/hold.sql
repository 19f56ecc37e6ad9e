-- Locks the queue position of an attempt, if the attempt still has it: what it writes then is its own.
-- $1 line, $2 run, $3 lease, $4 attempt; by the primary key
select attempt from refrain_queue
where line = $1 and run = $2 and lease = $3 and attempt = $4 /*for update*/
