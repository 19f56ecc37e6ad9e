-- A person has looked, and gives a project's ledger to another store.
-- $1 project, $2 its store from now on, $3 the one that was shown to the person; by the primary key
update refrain_projects set store = $2 where name = $1 and store = $3
