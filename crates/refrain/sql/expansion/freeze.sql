-- Freezes the scopes of a window, once. A concurrent statement waits, and then finds it done.
-- $1 run, $2 scopes, $3 hash
insert into refrain_expansions (run, scopes, hash) values ($1, $2, $3) on conflict (run) do nothing
