-- Raises the fence of a run to the number of an attempt; never lowers it.
-- $1 project, $2 job, $3 run, $4 attempt; by fences_are_unique
insert into refrain_fences (project, job, run, attempt) values ($1, $2, $3, $4)
on conflict (project, job, run) do update set attempt = excluded.attempt
where refrain_fences.attempt < excluded.attempt
