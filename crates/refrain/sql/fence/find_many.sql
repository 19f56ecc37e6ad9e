-- Where the fences of runs are, and how high; held there until the transaction ends.
-- $1 project, $2… rows; by fences_are_unique
select fences.id, fences.job, fences.run, fences.attempt
from rows(2: job text, run text) as r
join refrain_fences as fences on fences.project = $1 and fences.job = r.job and fences.run = r.run
/*for share of fences*/
