-- Slots of runs that are not running.
-- $1 limit; a scan
select slots.run from refrain_slots as slots
where not exists (select 1 from refrain_queue as queue where queue.run = slots.run and queue.lease is not null)
order by slots.run
limit $1
