-- A job by its name.
-- $1 name; by the unique index
select id, name, identity, from_file from refrain_jobs where name = $1
