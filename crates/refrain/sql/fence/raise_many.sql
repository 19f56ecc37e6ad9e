-- Raises the fences of runs to the numbers of their attempts, and never lowers one. Fences that are not returned are higher.
-- $1 project, $2… rows; by fences_are_unique
insert into refrain_fences (project, job, run, attempt, nonce)
select $1, r.job, r.run, r.attempt, r.nonce
from rows(2: job text, run text, attempt integer, nonce integer) as r
where true
order by r.job, r.run
on conflict (project, job, run) do update set attempt = excluded.attempt, nonce = excluded.nonce
where refrain_fences.attempt < excluded.attempt
    or (refrain_fences.attempt = excluded.attempt and refrain_fences.nonce < excluded.nonce)
returning job, run, id
