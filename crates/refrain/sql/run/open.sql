-- Opens runs of windows; skipped ones are inserted with their outcome. Rows that are returned are new.
-- $1 job, $2… rows; by runs_are_unique
insert into refrain_runs
    (job, attempt, window_start, window_end, opened_at, ended_at, open, key, outcome, message)
select $1, case when r.outcome is null then 1 else 0 end, r.window_start, r.window_end,
    (select now from refrain_clock), case when r.outcome is null then null else (select now from refrain_clock) end,
    r.outcome is null, r.key, r.outcome, r.message
from rows(2: key text, window_start integer, window_end integer, outcome text, message text) as r
where true
order by r.key
on conflict (job, key) do nothing
returning id, key
