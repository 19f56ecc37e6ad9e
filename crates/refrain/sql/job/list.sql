-- All jobs that were ever registered.
select id, name from refrain_jobs order by id
