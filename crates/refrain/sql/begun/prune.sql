-- Deletes marks of runs that ended long ago: only an operator can retry them, which clears their marks.
-- $1 ended before, $2 and $3 first and last run of the range; by the primary key
delete from refrain_begun
where run between $2 and $3
    and run in (select id from refrain_runs where id between $2 and $3 and not open and ended_at < $1)
