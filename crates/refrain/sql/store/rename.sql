-- Gives a copy of a store a name of its own, and marks it: it is another store than the one it was copied from.
-- $1 its id from now on, $2 why a person must look at it
update refrain_store set id = $1, doubt = $2
