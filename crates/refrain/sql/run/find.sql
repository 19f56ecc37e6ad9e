-- A run by its natural key.
-- $1 job, $2 key; by runs_are_unique
select id from refrain_runs where job = $1 and key = $2
