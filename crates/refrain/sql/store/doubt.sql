-- Marks the store as in doubt: an operator must decide before anything runs. Not if one has decided since the process opened it.
-- $1 why, $2 when an operator last decided, as far as the process knows
update refrain_store set doubt = $1 where doubt is null and recovered_at is not distinct from $2
