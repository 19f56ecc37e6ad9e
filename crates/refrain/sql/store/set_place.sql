-- Records where a store is that has no recorded place.
-- $1 place
update refrain_store set place = $1 where place is null
