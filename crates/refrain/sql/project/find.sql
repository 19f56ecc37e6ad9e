-- Which store a project's ledger belongs to, and what this database is called.
-- $1 project; by the primary key
select store, destination from refrain_projects where name = $1
