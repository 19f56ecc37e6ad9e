-- Puts a lease on runs of a line that have none, and writes down which claim it is.
-- $1 lease, $2 line, $3… rows; by the primary key
update refrain_queue set lease = $1, nonce = r.nonce
from rows(3: run integer, nonce integer) as r
where refrain_queue.line = $2 and refrain_queue.run = r.run and refrain_queue.lease is null
