-- The read does not wait for a claim whose commit is in flight.
select id from refrain_workers where id = $1
