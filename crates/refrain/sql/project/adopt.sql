-- An operator gives a project's ledger to another store.
-- $1 project, $2 its new store, $3 the store that was shown to the operator; by the primary key
update refrain_projects set store = $2 where name = $1 and store = $3
