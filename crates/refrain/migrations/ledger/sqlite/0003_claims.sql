-- Which claim of an attempt it was, and which holder of a lane.
--
-- A store that has lost its last commits gives out the number of an attempt again. So each claim of an attempt has a nonce
-- beside the number, in the fence and wherever a row says which attempt wrote it. Of two claims with one number the later one
-- has the higher nonce, raises the fence over the other, and neither takes the other's rows for its own.
--
-- A lane has a fence of its own. A run that was given up is not followed by an attempt that raises its fence; the lane's next
-- holder is another run, and raises this one.

alter table refrain_fences add column nonce integer not null default 0;

alter table refrain_units add column nonce integer;
alter table refrain_units add column applied_nonce integer;

alter table refrain_checkpoints add column nonce integer;

alter table refrain_publishes add column nonce integer;

create table refrain_lane_fences (
    id      integer primary key autoincrement,
    number  integer not null,
    project text not null,
    job     text not null,
    scope   text not null,
    constraint lane_fences_are_unique unique (project, job, scope)
) strict;
