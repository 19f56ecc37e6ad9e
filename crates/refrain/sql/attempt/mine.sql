-- Whether this worker has recorded the end of an attempt in the history. A take-over does not count.
-- $1 run, $2 number, $3 worker
select number from refrain_attempts
where run = $1 and number = $2 and worker = $3 and ended not in ('taken-over', 'crashed-alone')
