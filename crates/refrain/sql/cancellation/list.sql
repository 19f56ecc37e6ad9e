-- Running runs that are cancelled. Each run is looked up by itself: joined, and without statistics, PostgreSQL would read all runs.
-- $1 limit
select cancellations.run from refrain_cancellations as cancellations
where (select runs.open from refrain_runs as runs where runs.id = cancellations.run)
order by cancellations.run
limit $1
