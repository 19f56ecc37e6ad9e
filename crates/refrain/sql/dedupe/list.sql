-- The requests for an existing run.
-- $1 run, $2 limit; by dedupes_run
select at, asked from refrain_dedupes where run = $1 order by id limit $2
