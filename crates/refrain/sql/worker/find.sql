-- Whether a worker exists.
-- $1 worker
select id from refrain_workers where id = $1
