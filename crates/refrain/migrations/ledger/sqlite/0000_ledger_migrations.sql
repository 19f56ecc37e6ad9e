-- Where applied migrations of the ledger are recorded. It precedes them all, so it is not recorded itself, and must be harmless
-- when it is executed again.
create table if not exists refrain_ledger_migrations (
    number     integer not null primary key,
    name       text not null,
    applied_at integer not null
) strict;
