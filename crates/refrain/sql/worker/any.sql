-- A worker that is registered, if there is one.
select id from refrain_workers order by id limit 1
