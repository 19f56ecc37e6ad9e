-- A job by its name.
-- $1 name; by the unique index
select id from refrain_jobs where name = $1
