-- Lines with queued runs, the most urgent first: one probe of the index for each line, however long it is.
-- Lines of paused jobs are left out. $1 limit, $2 jobs per priority; by the primary key
with recursive lines (line) as (
    select min(line) from refrain_queue
    union all
    select (select min(queue.line) from refrain_queue as queue where queue.line > lines.line)
    from lines where lines.line is not null
)
select lines.line from lines
join refrain_jobs as jobs on jobs.id = lines.line % $2
where lines.line is not null and jobs.paused_at is null
    and exists (select 1 from refrain_queue as queue where queue.line = lines.line and queue.lease is null)
order by lines.line
limit $1
