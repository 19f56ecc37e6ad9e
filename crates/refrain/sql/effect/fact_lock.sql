-- Locks every version of a fact. Every decision about a version begins so; a version that is inserted meanwhile is decided about
-- after this transaction, because it needs these locks too.
-- $1 key; by effects_are_unique
select id from refrain_effects where key = $1 order by version /*for update*/
