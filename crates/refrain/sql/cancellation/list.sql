-- Runs that are to end.
-- $1 limit
select run from refrain_cancellations order by run limit $1
