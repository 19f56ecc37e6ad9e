-- A person has looked, and wants the run again.
-- $1 run; by the primary key
delete from refrain_begun where run = $1
