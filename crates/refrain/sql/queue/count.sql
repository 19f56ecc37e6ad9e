-- How many runs are open.
select (select count(*) from refrain_queue) + (select count(*) from refrain_delayed)
    + (select count(*) from refrain_lane_waits) as number
