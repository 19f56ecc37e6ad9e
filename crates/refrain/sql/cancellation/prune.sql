-- Wishes that came too late: the run had ended by itself.
-- $1 and $2 first and last run of this stretch; by the primary key
delete from refrain_cancellations
where run between $1 and $2
    and run in (select id from refrain_runs where id between $1 and $2 and not open)
