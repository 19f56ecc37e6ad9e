-- Writes down where a store is that has not known its place before.
-- $1 place
update refrain_store set place = $1 where place is null
