-- Creates a ledger, unless it exists.
-- $1 project, $2 job, $3 scope, $4 window_start; by ledgers_are_unique
insert into refrain_ledgers (project, job, scope, window_start) values ($1, $2, $3, $4)
on conflict (project, job, scope, window_start) do nothing
