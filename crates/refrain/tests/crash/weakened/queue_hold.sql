-- Locks the queue row of a run, whichever worker holds it.
select attempt from refrain_queue
where line = $1 and run = $2 and cast($3 as bigint) > 0 and cast($4 as bigint) > 0 /*for update*/
