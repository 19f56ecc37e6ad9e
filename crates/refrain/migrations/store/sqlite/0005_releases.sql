-- Which releases may use the store.
--
-- `oldest` is the number of the oldest schema that a release must know to use these tables: an additive migration repeats that of
-- the one before, a breaking one has its own number. Null where the release that applied the migration did not record it: such
-- a release refuses every newer schema. `schema` is the number that the release of a worker knows; null: 4 at most.
alter table refrain_migrations add column oldest integer;
alter table refrain_workers add column schema integer;
alter table refrain_workers add column ledger_schema integer;
