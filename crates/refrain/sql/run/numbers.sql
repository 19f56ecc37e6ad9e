-- The numbers of runs, the highest first. A number can be read whatever else stands in the row.
-- $1 the last one of the page before, $2 limit; by the primary key
select id from refrain_runs where id < $1 order by id desc limit $2
