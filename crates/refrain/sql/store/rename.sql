-- Gives a copy of a store a name of its own: it is another store than the one it was copied from.
-- $1 its id from now on
update refrain_store set id = $1
