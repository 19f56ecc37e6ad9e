-- Locks the fences of runs until the transaction ends. No number: the fence is lower than expected.
-- A lookup for each row instead of a join: with a small table and a list the planner would start with the table, and scan the
-- list for each of its rows.
-- $1 project, $2… rows; by fences_are_unique
select r.job, r.run,
    (select fences.id from refrain_fences as fences
     where fences.project = $1 and fences.job = r.job and fences.run = r.run and fences.attempt = r.attempt
         and fences.nonce = r.nonce
     /*for share*/) as id
from rows(2: job text, run text, attempt integer, nonce integer) as r
