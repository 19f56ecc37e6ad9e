-- Raises the fence of a run to the number of an attempt, and to the nonce of its claim; never lowers it.
-- $1 project, $2 job, $3 run, $4 attempt, $5 nonce; by fences_are_unique
insert into refrain_fences (project, job, run, attempt, nonce) values ($1, $2, $3, $4, $5)
on conflict (project, job, run) do update set attempt = excluded.attempt, nonce = excluded.nonce
where refrain_fences.attempt < excluded.attempt
    or (refrain_fences.attempt = excluded.attempt and refrain_fences.nonce < excluded.nonce)
