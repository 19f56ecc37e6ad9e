-- A worker that has expired claims.
select id from refrain_workers where id = $1 /*for key share*/
