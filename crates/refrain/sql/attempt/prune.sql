-- Deletes history of attempts that ended long ago, for a range of runs.
-- $1 ended before, $2 and $3 first and last run of the range; by the primary key
delete from refrain_attempts where run between $2 and $3 and ended_at < $1
