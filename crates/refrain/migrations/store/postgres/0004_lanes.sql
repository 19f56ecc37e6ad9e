-- An attempt that lines up again after a back-off keeps what it has spent and how far it is suspected.
alter table refrain.lane_waits add column spent integer not null default 0;
alter table refrain.lane_waits add column suspicion integer not null default 0;
