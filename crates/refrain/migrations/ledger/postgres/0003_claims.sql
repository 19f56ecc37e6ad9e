-- Which claim of an attempt it was, and which holder of a lane.
--
-- A store that has lost its last commits gives out the number of an attempt again. So each claim of an attempt has a nonce
-- beside the number, in the fence and wherever a row says which attempt wrote it. Of two claims with one number the later one
-- has the higher nonce, raises the fence over the other, and neither takes the other's rows for its own.
--
-- A lane has a fence of its own. A run that was given up is not followed by an attempt that raises its fence; the lane's next
-- holder is another run, and raises this one.

alter table refrain.fences add column nonce bigint not null default 0;

alter table refrain.units
    add column nonce         bigint,
    add column applied_nonce bigint;

alter table refrain.checkpoints add column nonce bigint;

alter table refrain.publishes add column nonce bigint;

create table refrain.lane_fences (
    id      bigint generated always as identity primary key,
    number  bigint not null,
    project text collate "C" not null,
    job     text collate "C" not null,
    scope   text collate "C" not null,
    constraint lane_fences_are_unique unique (project, job, scope)
);
