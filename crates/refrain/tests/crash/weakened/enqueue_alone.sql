-- Without a constraint, and without a word on what happens to a key that has its run.
with settings as materialized (
    select set_config('lock_timeout', $5, true) as patience,
        set_config('synchronous_commit', case current_setting('synchronous_commit')
            when 'remote_apply' then 'remote_apply' else 'on' end, true) as durability
), opened as (
    insert into refrain_runs (job, attempt, opened_at, open, key, payload)
    select $1, 1, (select now from refrain_clock), true, $3, $4 from settings
    returning id
)
insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
select $2, opened.id, 1, 0, 0, false from opened
returning run
