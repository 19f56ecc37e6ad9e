-- Gives a job another name, with all its runs; not if the new name is taken.
-- $1 the old name, $2 the new one; by the unique index
update refrain_jobs set name = $2
where name = $1 and not exists (select 1 from refrain_jobs as taken where taken.name = $2)
