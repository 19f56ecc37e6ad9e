-- Where the fence of a run is, and how high.
-- $1 project, $2 job, $3 run; by fences_are_unique
select id, attempt from refrain_fences where project = $1 and job = $2 and run = $3
