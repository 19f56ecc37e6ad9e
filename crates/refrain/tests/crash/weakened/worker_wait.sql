-- The look does not wait for a claim whose commit is under way.
select id from refrain_workers where id = $1
