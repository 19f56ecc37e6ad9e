-- The fence of a run and its height; and that of its lane, if it is where this claim has raised it.
-- $1 project, $2 job, $3 run, $4 scope of the lane or null, $5 nonce; by fences_are_unique and lane_fences_are_unique
select fences.id, fences.attempt, fences.nonce,
    (select lanes.id from refrain_lane_fences as lanes
     where lanes.project = $1 and lanes.job = $2 and lanes.scope = $4 and lanes.number = $5) as lane
from refrain_fences as fences
where fences.project = $1 and fences.job = $2 and fences.run = $3
