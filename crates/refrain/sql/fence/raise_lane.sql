-- Raises the fence of a lane to the number of its present holder; never lowers it.
-- $1 project, $2 job, $3 scope, $4 number; by lane_fences_are_unique
insert into refrain_lane_fences (project, job, scope, number) values ($1, $2, $3, $4)
on conflict (project, job, scope) do update set number = excluded.number
where refrain_lane_fences.number < excluded.number
