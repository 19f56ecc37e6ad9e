-- An operator has decided that the run may be executed again.
-- $1 run; by the primary key
delete from refrain_begun where run = $1
