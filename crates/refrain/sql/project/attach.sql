-- Writes down whose ledger it is; a store that comes to one without a store is its store from then on.
-- $1 project, $2 store, $3 destination; by the primary key
insert into refrain_projects (name, store, destination) values ($1, $2, $3)
on conflict (name) do update set store = excluded.store
where refrain_projects.store is null and excluded.store is not null
