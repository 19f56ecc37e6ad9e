-- One revision of a job's timetable.
-- $1 job, $2 number, $3 schedule, $4 zone, $5 rules, $6 grid, $7 gap, $8 fold, $9 start, $10 from, $11 until, $12 joins, $13 ticks after
insert into refrain_revisions
    (job, number, schedule, zone, rules, grid, gap, fold, start, from_at, until_at, joins, ticks_after)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
