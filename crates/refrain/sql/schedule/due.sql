-- Schedules with something to open, page by page: a scheduler skips jobs that it does not have.
-- $1 now, $2 and $3 the last one of the previous page, $4 limit; by schedules_next_at
select job, next_at from refrain_schedules
where next_at <= $1 and (next_at, job) > ($2, $3)
order by next_at, job
limit $4
