-- The last run that was opened.
select coalesce(max(id), 0) as id from refrain_runs
