-- Deletes the payload and messages of a finished run after the retention; that it ran, how it ended, and why it was skipped
-- stays. The payload is marked as deleted: another attempt without it would do something else.
-- $1 ended before, $2 and $3 first and last run of the range; by the primary key
update refrain_runs
set payload = case when payload is null then null else '' end,
    message = case when outcome = 'skipped' then message else null end
where id between $2 and $3 and not open and ended_at < $1
    and (payload <> '' or (message is not null and outcome <> 'skipped'))
