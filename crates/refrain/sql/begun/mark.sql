-- Records that a command which must not be executed twice is about to begin.
-- $1 run, $2 attempt; by the primary key
insert into refrain_begun (run, attempt, at)
select cast($1 as bigint), cast($2 as integer), now from refrain_clock where true
on conflict (run, attempt) do nothing
