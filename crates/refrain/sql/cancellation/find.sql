-- Which of these runs are cancelled.
-- $1… rows
select run from refrain_cancellations where run in (select r.run from rows(1: run integer) as r)
