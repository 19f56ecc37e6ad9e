-- An operator must look at the store before anything runs. Not if one has done so since the process that doubts has opened it.
-- $1 why, $2 when an operator had said what the store is, as far as the process knows
update refrain_store set doubt = $1 where doubt is null and recovered_at is not distinct from $2
