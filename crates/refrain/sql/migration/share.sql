-- Keeps migrations out while a worker registers; other registrations do not wait.
select number from refrain_migrations order by number /*for share*/
