-- Keeps the fences of runs where they are until the transaction ends. No number: it is not as high as it is said to be.
-- A look for each row instead of a join: of a small table and a list the planner would take the table first, and go through
-- the list for each of its rows.
-- $1 project, $2… rows; by fences_are_unique
select r.job, r.run,
    (select fences.id from refrain_fences as fences
     where fences.project = $1 and fences.job = r.job and fences.run = r.run and fences.attempt = r.attempt
         and fences.nonce = r.nonce
     /*for share*/) as id
from rows(2: job text, run text, attempt integer, nonce integer) as r
