-- Requests another attempt of a run that has none open: the one compare-and-set by which an attempt is queued.
-- `redo` begins one with the new attempt, `again` means none, and any other decision continues one that is not done.
-- $1 run, $2 its last attempt, $3 the decision
update refrain_runs
set open = true, redo = case cast($3 as text) when 'redo' then attempt + 1 when 'again' then null else redo end
where id = $1 and not open and attempt = $2
