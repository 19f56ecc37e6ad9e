-- Queue positions of runs that are not open, or that have two: they would run twice.
-- $1 limit; a scan
select places.run from (
    select run from refrain_queue union all select run from refrain_delayed union all select run from refrain_lane_waits
) as places
left join refrain_runs as runs on runs.id = places.run
group by places.run
having count(*) > 1 or max(case when runs.open then 1 else 0 end) = 0
order by places.run
limit $1
