-- Freezes the scopes of a window.
-- $1 run, $2 scopes, $3 hash
insert into refrain_expansions (run, scopes, hash) values ($1, $2, $3)
