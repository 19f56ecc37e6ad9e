-- Asks for another attempt of a run that has none: the one compare-and-set by which an attempt is queued.
-- $1 run, $2 its last attempt
update refrain_runs set open = true where id = $1 and not open and attempt = $2
