-- How the last attempt of a run ended.
-- $1 run
select columns(run look) from refrain_runs as runs where id = $1
