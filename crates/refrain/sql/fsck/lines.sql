-- Runs that stand in a line of another job, or in no line: no worker of their job looks there.
-- $1 limit; a scan
select places.run from (
    select run, line from refrain_queue union all select run, line from refrain_delayed
    union all select run, line from refrain_lane_waits
) as places
join refrain_runs as runs on runs.id = places.run
where places.line < 0 or places.line >= 4 * 4294967296 or places.line % 4294967296 <> runs.job
order by places.run
limit $1
