-- All jobs that were ever registered.
select id, name, identity, from_file from refrain_jobs order by id
