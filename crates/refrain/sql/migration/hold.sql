-- Locks the applied migrations: a migration waits for workers that are registering, and they wait for it.
select number from refrain_migrations order by number /*for update*/
