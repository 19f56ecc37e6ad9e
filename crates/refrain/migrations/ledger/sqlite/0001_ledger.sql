-- The ledger: what lives beside the rows, in the database that holds them.
--
-- A ledger is the units of one job in one scope, for ever or for one window. Every run that writes here has a fence, which
-- is raised before it reads anything and compared in every transaction in which it writes. `units` is wide enough to
-- answer "by whom, when, in which content" and no wider: bodies stay only with units that failed. `written` says that rows
-- of some content are there, whatever became of the last one. `sent` is when something was begun with a unit that no
-- transaction can take back, for as long as nobody knows its end: the unit is in doubt while it is parked, and is sent again
-- otherwise.
-- Instants are microseconds since 1970 in UTC. Texts are compared as bytes.

create view if not exists refrain_clock as
    select cast(unixepoch('subsec') * 1000000 as integer) as now;

-- Whose ledger it is. A store that is not the one written here is a copy or a new beginning, and must say so.
create table refrain_projects (
    name        text not null primary key,
    store       text,
    destination text not null
) strict, without rowid;

create table refrain_ledgers (
    id           integer primary key autoincrement,
    project      text not null,
    job          text not null,
    scope        text not null,
    window_start text not null,
    constraint ledgers_are_unique unique (project, job, scope, window_start)
) strict;

create table refrain_fences (
    id      integer primary key autoincrement,
    attempt integer not null,
    project text not null,
    job     text not null,
    run     text not null,
    constraint fences_are_unique unique (project, job, run)
) strict;

create table refrain_units (
    ledger      integer not null,
    key         text not null,
    fingerprint integer,
    ordinal     integer,
    fence       integer,
    at          integer not null,
    version     integer not null,
    attempt     integer,
    failures    integer not null,
    written     integer not null check (written in (0, 1)),
    status      text not null check (status in ('applied', 'failed', 'parked')),
    input       text,
    message     text,
    sent        integer,
    primary key (ledger, key),
    constraint what_is_applied_is_not_in_doubt check (sent is null or status <> 'applied')
) strict, without rowid;
create index refrain_units_unsettled on refrain_units (ledger, key) where status <> 'applied';

create table refrain_checkpoints (
    ledger   integer not null,
    name     text not null,
    position text not null,
    fence    integer,
    attempt  integer,
    at       integer not null,
    primary key (ledger, name)
) strict, without rowid;

-- Wishes: an effect, or a run of a job. Whoever writes one beside their rows has it when the rows are there, and only
-- then. A plain insert of (project, kind, name, key) is all it takes, from any language.
create table refrain_intents (
    id      integer primary key autoincrement,
    project text not null,
    kind    text not null check (kind in ('effect', 'run')),
    name    text not null,
    key     text not null,
    version integer not null default 1,
    store   text,
    fence   integer,
    attempt integer,
    payload text
) strict;
create index refrain_intents_project on refrain_intents (project, id);

-- What was published last in each place of a ledger: by which attempt, how much. The answer to "has it been committed?".
create table refrain_publishes (
    ledger  integer not null,
    target  text not null,
    mode    text not null,
    rows    integer not null,
    fence   integer not null,
    attempt integer not null,
    version integer not null,
    at      integer not null,
    primary key (ledger, target)
) strict, without rowid;

-- What a window has added to numbers that others add to as well, so that it can be taken back. Never pruned: without its
-- amount, a window that is done again would count twice.
create table refrain_deltas (
    ledger integer not null,
    target text not null,
    key    text not null,
    name   text not null,
    amount any not null,
    primary key (ledger, target, key, name)
) strict, without rowid;
