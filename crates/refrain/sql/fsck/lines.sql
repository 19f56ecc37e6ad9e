-- Open runs in a line of another job, or in no valid line: the workers of their job do not look there.
-- $1 limit, $2 jobs per priority; a scan
select places.run from (
    select run, line from refrain_queue union all select run, line from refrain_delayed
    union all select run, line from refrain_lane_waits
) as places
join refrain_runs as runs on runs.id = places.run
where places.line < 0 or places.line >= 4 * $2 or places.line % $2 <> runs.job
order by places.run
limit $1
