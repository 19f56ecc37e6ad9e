-- Locks the applied migrations: while a worker registers, no migration begins, and the other way round.
select number from refrain_migrations order by number /*for update*/
