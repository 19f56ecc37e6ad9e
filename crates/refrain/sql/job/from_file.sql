-- Marks jobs that a file of the project describes.
-- $1… rows; by the primary key
update refrain_jobs set from_file = true where id in (select r.job from rows(1: job integer) as r)
