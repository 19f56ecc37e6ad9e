-- How many runs are queued before a run in its line, counted up to a limit.
-- $1 line, $2 run, $3 limit; by the primary key
select count(*) as number from (
    select 1 as one from refrain_queue where line = $1 and run < $2 and lease is null limit $3
) as ahead
