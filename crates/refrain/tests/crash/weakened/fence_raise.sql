-- Leaves a fence that is there where it is.
insert into refrain_fences (project, job, run, attempt, nonce) values ($1, $2, $3, $4, $5)
on conflict (project, job, run) do nothing
