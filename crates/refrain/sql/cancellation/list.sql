-- Runs under way that are to end.
-- $1 limit
select cancellations.run from refrain_cancellations as cancellations
join refrain_runs as runs on runs.id = cancellations.run
where runs.open
order by cancellations.run
limit $1
