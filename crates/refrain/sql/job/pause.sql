-- Pauses a job; one that is already paused keeps its time.
-- $1 job
update refrain_jobs set paused_at = (select now from refrain_clock) where id = $1 and paused_at is null
