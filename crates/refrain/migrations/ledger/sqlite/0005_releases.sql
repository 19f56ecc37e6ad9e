-- The number of the oldest schema that a release must know to use the ledger, as in the migrations of the store.
alter table refrain_ledger_migrations add column oldest integer;
