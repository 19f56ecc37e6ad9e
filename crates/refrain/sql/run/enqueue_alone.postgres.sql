-- Opens one run of a caller's key and queues its first attempt, as a transaction of one statement. Returns the new run; returns
-- nothing if the key existed already, and then nothing was written.
-- The inserted row comes from `settings`, so those are applied first: whatever the defaults of the database, the commit is on
-- disk when it is reported, and the wait for another transaction with the same key ends after $5.
-- $1 job, $2 line, $3 key, $4 payload, $5 milliseconds; by runs_are_unique
with settings as materialized (
    select set_config('lock_timeout', $5, true) as patience,
        set_config('synchronous_commit', case current_setting('synchronous_commit')
            when 'remote_apply' then 'remote_apply' else 'on' end, true) as durability
), opened as (
    insert into refrain_runs (job, attempt, opened_at, open, key, payload)
    select $1, 1, (select now from refrain_clock), true, $3, $4 from settings
    on conflict (job, key) do nothing
    returning id
)
insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
select $2, opened.id, 1, 0, 0, false from opened
returning run
