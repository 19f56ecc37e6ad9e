-- Gives a lease to runs of a line that have none, and records the nonce of the claim.
-- The line is a column of the rows: with one argument for all rows SQLite would read the whole line, and all the rows for each run of it.
-- $1 lease, $2… rows; by the primary key
update refrain_queue set lease = $1, nonce = r.nonce
from rows(2: line integer, run integer, nonce integer) as r
where refrain_queue.line = r.line and refrain_queue.run = r.run and refrain_queue.lease is null
