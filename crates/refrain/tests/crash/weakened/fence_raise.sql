-- Leaves a fence that is there where it is.
insert into refrain_fences (project, job, run, attempt) values ($1, $2, $3, $4)
on conflict (project, job, run) do nothing
