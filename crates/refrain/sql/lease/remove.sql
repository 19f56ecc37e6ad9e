-- Removes leases that have no member left.
-- $1… rows
delete from refrain_leases where id in (select r.lease from rows(1: lease integer) as r)
