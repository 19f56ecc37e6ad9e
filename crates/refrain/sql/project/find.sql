-- The store that a project's ledger belongs to, and the identity of this database.
-- $1 project; by the primary key
select store, destination from refrain_projects where name = $1
