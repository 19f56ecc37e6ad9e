-- Whether an attempt ended by the word of this worker, and is history. A take-over is not its word.
-- $1 run, $2 number, $3 worker
select number from refrain_attempts
where run = $1 and number = $2 and worker = $3 and ended not in ('taken-over', 'crashed-alone')
