-- Gives a copy of a store an id of its own, and marks it as in doubt: it is not the store that it was copied from.
-- $1 its new id, $2 why an operator must decide
update refrain_store set id = $1, doubt = $2
