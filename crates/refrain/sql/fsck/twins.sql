-- Runs that exist twice.
-- $1 limit; by runs_are_unique
select max(id) as run from refrain_runs group by job, key having count(*) > 1 order by max(id) limit $1
