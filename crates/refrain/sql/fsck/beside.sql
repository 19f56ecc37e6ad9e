-- Runs in the queue that belong to a lane and do not hold it: they would run beside the holder.
-- $1 limit; a scan
select queue.run from refrain_queue as queue
where queue.lane and queue.run not in (select run from refrain_lanes)
order by queue.run
limit $1
