-- A lease by its number.
-- $1 lease
select id, line, first_run, last_run from refrain_leases where id = $1
