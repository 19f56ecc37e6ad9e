-- The ledger: what lives beside the rows, in the database that holds them.
--
-- A ledger is the units of one job in one scope, for ever or for one window. Every run that writes here has a fence, which
-- is raised before it reads anything and compared in every transaction in which it writes. `units` is wide enough to
-- answer "by whom, when, in which content" and no wider: bodies stay only with units that failed. `written` says that rows
-- of some content are there, whatever became of the last one. `sent` is when something was begun with a unit that no
-- transaction can take back, for as long as nobody knows its end: the unit is in doubt while it is parked, and is sent again
-- otherwise.
-- Instants are microseconds since 1970 in UTC. Texts are compared as bytes.

create or replace view refrain.clock as
    select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now;

-- Whose ledger it is. A store that is not the one written here is a copy or a new beginning, and must say so.
create table refrain.projects (
    name        text collate "C" not null primary key,
    store       text collate "C",
    destination text collate "C" not null
);

create table refrain.ledgers (
    id           bigint generated always as identity primary key,
    project      text collate "C" not null,
    job          text collate "C" not null,
    scope        text collate "C" not null,
    window_start text collate "C" not null,
    constraint ledgers_are_unique unique (project, job, scope, window_start)
);

create table refrain.fences (
    id      bigint generated always as identity primary key,
    attempt integer not null,
    project text collate "C" not null,
    job     text collate "C" not null,
    run     text collate "C" not null,
    constraint fences_are_unique unique (project, job, run)
);

create table refrain.units (
    ledger      bigint not null,
    key         text collate "C" not null,
    fingerprint bigint,
    ordinal     bigint,
    fence       bigint,
    at          bigint not null,
    version     integer not null,
    attempt     integer,
    failures    integer not null,
    written     boolean not null,
    status      text collate "C" not null check (status in ('applied', 'failed', 'parked')),
    input       text collate "C",
    message     text collate "C",
    sent        bigint,
    primary key (ledger, key),
    constraint what_is_applied_is_not_in_doubt check (sent is null or status <> 'applied')
);
create index units_unsettled on refrain.units (ledger, key) where status <> 'applied';

create table refrain.checkpoints (
    ledger   bigint not null,
    name     text collate "C" not null,
    position text collate "C" not null,
    fence    bigint,
    attempt  integer,
    at       bigint not null,
    primary key (ledger, name)
);

-- Wishes: an effect, or a run of a job. Whoever writes one beside their rows has it when the rows are there, and only
-- then. A plain insert of (project, kind, name, key) is all it takes, from any language.
create table refrain.intents (
    id      bigint generated always as identity primary key,
    project text collate "C" not null,
    kind    text collate "C" not null check (kind in ('effect', 'run')),
    name    text collate "C" not null,
    key     text collate "C" not null,
    version integer not null default 1,
    store   text collate "C",
    fence   bigint,
    attempt integer,
    payload text collate "C"
);
create index intents_project on refrain.intents (project, id);

-- What was published last in each place of a ledger: by which attempt, how much. The answer to "has it been committed?".
create table refrain.publishes (
    ledger  bigint not null,
    target  text collate "C" not null,
    mode    text collate "C" not null,
    rows    bigint not null,
    fence   bigint not null,
    attempt integer not null,
    version integer not null,
    at      bigint not null,
    primary key (ledger, target)
);

-- What a window has added to numbers that others add to as well, so that it can be taken back. Never pruned: without its
-- amount, a window that is done again would count twice.
create table refrain.deltas (
    ledger bigint not null,
    target text collate "C" not null,
    key    text collate "C" not null,
    name   text collate "C" not null,
    amount numeric not null,
    primary key (ledger, target, key, name)
);

-- The id of the row with this natural key, the same as in Rust and on SQLite. Immutable, for a database never changes its
-- encoding, which is all that `convert_to` depends on.
create function refrain.surrogate_key(variadic parts text[]) returns uuid
    language sql immutable parallel safe
    return (
        -- What is no uuid is refused with its text: the one way to raise an error here.
        select cast(case when count > 0
            then encode(set_byte(set_byte(hash, 6, get_byte(hash, 6) & 15 | 128), 8, get_byte(hash, 8) & 63 | 128), 'hex')
            else 'there is nothing to hash: name at least one part' end as uuid)
        from (
            select count(*) as count, substr(sha256(
                int4send(20) || cast('refrain/v1/surrogate' as bytea) || int4send(cast(count(*) as integer))
                || string_agg(coalesce(
                    decode('01', 'hex') || int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8'),
                    decode('00', 'hex')), '' order by place)
            ), 1, 16) as hash
            from unnest(parts) with ordinality as part (value, place)
        ) as hashed
    );
