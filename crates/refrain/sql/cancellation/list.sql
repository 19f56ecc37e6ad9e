-- Runs under way that are to end. The join is crossed, so that SQLite always begins with the wishes, which are few.
-- $1 limit
select cancellations.run from refrain_cancellations as cancellations
cross join refrain_runs as runs
where runs.id = cancellations.run and runs.open
order by cancellations.run
limit $1
