-- One registered worker, if there is any.
select id from refrain_workers order by id limit 1
