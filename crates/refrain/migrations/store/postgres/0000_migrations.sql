-- Where applied migrations of the store are recorded. It precedes them all, so it is not recorded itself, and must be harmless
-- when it is executed again. The lock ends with the transaction: of two processes that migrate at once, one waits.
select pg_advisory_xact_lock(7381140026);
create schema if not exists refrain;
create table if not exists refrain.migrations (
    number     integer not null primary key,
    name       text collate "C" not null,
    applied_at bigint not null
);
