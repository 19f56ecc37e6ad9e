-- Says to the second attempt that the fence is raised.
select id, cast(2 as integer) as attempt from refrain_fences where project = $1 and job = $2 and run = $3
