-- Queue positions of runs whose attempt has a number that cannot be read.
-- $1 limit; a scan
select places.run from (
    select run, attempt from refrain_queue
    union all select run, attempt from refrain_delayed
    union all select run, attempt from refrain_lane_waits
) as places
where places.attempt < 0 or places.attempt > 2147483647
order by places.run
limit $1
