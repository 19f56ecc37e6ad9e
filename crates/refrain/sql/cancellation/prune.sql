-- Deletes cancellations that came too late: the run had already ended.
-- $1 and $2 first and last run of the range; by the primary key
delete from refrain_cancellations
where run between $1 and $2
    and run in (select id from refrain_runs where id between $1 and $2 and not open)
