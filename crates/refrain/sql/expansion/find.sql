-- The scopes of a window, once they are frozen.
-- $1 run
select scopes, hash from refrain_expansions where run = $1
