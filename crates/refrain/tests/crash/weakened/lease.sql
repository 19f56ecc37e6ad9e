-- Puts a lease on runs of a line, whichever worker holds them.
update refrain_queue set lease = $1, nonce = r.nonce
from rows(2: line integer, run integer, nonce integer) as r
where refrain_queue.line = r.line and refrain_queue.run = r.run
