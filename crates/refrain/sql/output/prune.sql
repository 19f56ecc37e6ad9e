-- Deletes output of runs that ended long ago, for a range of runs.
-- $1 ended before, $2 and $3 first and last run of the range; by the primary key
delete from refrain_outputs
where run between $2 and $3
    and run in (select id from refrain_runs where id between $2 and $3 and not open and ended_at < $1)
