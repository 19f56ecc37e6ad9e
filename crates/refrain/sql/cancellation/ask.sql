-- Records that an operator cancels a running run.
-- $1 run
insert into refrain_cancellations (run, asked_at) values ($1, (select now from refrain_clock)) on conflict do nothing
