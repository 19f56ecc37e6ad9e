-- A person must look at the store before anything runs.
-- $1 why
update refrain_store set doubt = $1 where doubt is null
