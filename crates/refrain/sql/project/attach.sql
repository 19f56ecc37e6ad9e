-- Records the owner of a ledger; a ledger without a store gets this one.
-- $1 project, $2 store, $3 destination; by the primary key
insert into refrain_projects (name, store, destination) values ($1, $2, $3)
on conflict (name) do update set store = excluded.store
where refrain_projects.store is null and excluded.store is not null
