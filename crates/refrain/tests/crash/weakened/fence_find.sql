-- Says to the second attempt that the fence is raised.
select id, cast(2 as integer) as attempt, cast($5 as bigint) as nonce, cast(null as bigint) as lane
from refrain_fences where project = $1 and job = $2 and run = $3 and (cast($4 as text) is null or true)
