-- What a claim is called, and where the store is.
--
-- `nonce` tells claims of one attempt apart, also after this store has lost its last commits: it is made of the time and of
-- chance, and never falls. `lane_numbers` is the highest that a holder of each lane has had; it stays when the lane is free.
alter table refrain_queue add column nonce integer not null default 0;

create table refrain_lane_numbers (
    job    integer not null,
    scope  text not null,
    number integer not null,
    primary key (job, scope)
) strict, without rowid;

-- `place` is where the store was when it last knew its place. `doubt` says why a person must look before anything runs.
-- `recovered_at` is when a person last said what the store is. `forgets_before`: what the store does not know since then may have
-- been done before then, for it was restored or copied.
alter table refrain_store add column place text;
alter table refrain_store add column doubt text;
alter table refrain_store add column recovered_at integer;
alter table refrain_store add column forgets_before integer;
