-- The requests for an existing run, latest first.
-- $1 run, $2 limit; by dedupes_run
select at, asked from refrain_dedupes where run = $1 order by id desc limit $2
