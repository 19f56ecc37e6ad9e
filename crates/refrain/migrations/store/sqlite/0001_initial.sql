-- The store: what is scheduled, what ran, what is open. Its tables bear the name of the house.
--
-- `runs` is permanent and narrow, and nothing indexes its state, so the one update at its end touches no index.
-- An open run stands in exactly one of three places: `queue`
-- (it may begin, or has begun under a lease), `delayed` (not before some time), `lane_waits` (behind another run
-- of its lane). A line of the queue is one job at one priority; a claim reads a line from its front.
-- Instants are microseconds since 1970 in UTC. Texts are compared as bytes.

-- The clock of leases: that of the machine, which everyone who opens this file shares.
create view if not exists refrain_clock as
    select cast(unixepoch('subsec') * 1000000 as integer) as now;

create table refrain_store (
    only_row   integer not null primary key default 1 check (only_row = 1),
    id         text not null,
    project    text not null,
    simulated  integer not null check (simulated in (0, 1)),
    created_at integer not null
) strict;

-- `identity` is the first name of a job, under which its units are remembered; a renamed job keeps it.
create table refrain_jobs (
    id        integer primary key autoincrement,
    name      text not null unique,
    identity  text not null,
    paused_at integer
) strict;

-- Every name that a job has or had. It is never given to another one, or the work of the one would count as the other's.
create table refrain_job_names (
    name text not null primary key,
    job  integer not null
) strict, without rowid;

create table refrain_schedules (
    job     integer not null primary key,
    covered integer,
    next_at integer
) strict, without rowid;
create index refrain_schedules_next_at on refrain_schedules (next_at, job);

create table refrain_revisions (
    job         integer not null,
    number      integer not null,
    schedule    text not null,
    zone        text not null,
    rules       text not null,
    grid        text not null,
    gap         text not null,
    fold        text not null,
    start       integer,
    from_at     integer not null,
    until_at    integer,
    joins       integer not null check (joins in (0, 1)),
    ticks_after integer not null,
    primary key (job, number)
) strict, without rowid;

create table refrain_runs (
    id           integer primary key autoincrement,
    job          integer not null,
    attempt      integer not null,
    version      integer,
    window_start integer,
    window_end   integer,
    opened_at    integer not null,
    started_at   integer,
    ended_at     integer,
    worker       integer,
    open         integer not null check (open in (0, 1)),
    key          text not null,
    outcome      text,
    message      text,
    payload      text,
    constraint runs_are_unique unique (job, key),
    check (open or outcome is not null)
) strict;

create table refrain_queue (
    line      integer not null,
    run       integer not null,
    lease     integer,
    attempt   integer not null,
    spent     integer not null,
    suspicion integer not null,
    lane      integer not null check (lane in (0, 1)),
    primary key (line, run)
) strict, without rowid;

create table refrain_delayed (
    run       integer not null primary key,
    wake_at   integer not null,
    line      integer not null,
    attempt   integer not null,
    spent     integer not null,
    suspicion integer not null,
    lane      integer not null check (lane in (0, 1))
) strict, without rowid;
create index refrain_delayed_wake_at on refrain_delayed (wake_at, run);

create table refrain_lanes (
    job   integer not null,
    scope text not null,
    run   integer not null,
    primary key (job, scope)
) strict, without rowid;

create table refrain_lane_waits (
    job     integer not null,
    scope   text not null,
    key     text not null,
    run     integer not null,
    line    integer not null,
    attempt integer not null,
    primary key (job, scope, key)
) strict, without rowid;

create table refrain_slots (
    job  integer not null,
    slot integer not null,
    run  integer not null unique,
    primary key (job, slot)
) strict, without rowid;

create table refrain_workers (
    id         integer primary key autoincrement,
    process    text not null,
    started_at integer not null,
    expires_at integer not null
) strict;

create table refrain_leases (
    id         integer not null primary key,
    worker     integer not null,
    line       integer not null,
    first_run  integer not null,
    last_run   integer not null,
    claimed_at integer not null
) strict, without rowid;
create index refrain_leases_worker on refrain_leases (worker, id);

create table refrain_attempts (
    run        integer not null,
    number     integer not null,
    ended      text not null,
    started_at integer,
    ended_at   integer not null,
    worker     integer,
    message    text,
    primary key (run, number)
) strict, without rowid;

create table refrain_cancellations (
    run      integer not null primary key,
    asked_at integer not null
) strict, without rowid;

create table refrain_expansions (
    run    integer not null primary key,
    scopes integer not null,
    hash   text not null
) strict, without rowid;

-- Effects, by the fact and the version of its rule. They arrive from intents, as often as it takes, and exist once.
create table refrain_effects (
    id         integer primary key autoincrement,
    key        text not null,
    version    integer not null,
    name       text not null,
    state      text not null,
    job        text,
    run        text,
    payload    text,
    arrived_at integer not null,
    constraint effects_are_unique unique (key, version)
) strict;

create table refrain_effect_dedupes (
    id      integer primary key autoincrement,
    effect  integer not null,
    version integer not null,
    at      integer not null,
    asked   text not null
) strict;
create index refrain_effect_dedupes_effect on refrain_effect_dedupes (effect, id);

-- Which intents of which database have been copied. Copying one again does no harm, for what it wishes for exists once; but
-- it must not look as if somebody had asked again.
create table refrain_arrivals (
    id          integer primary key autoincrement,
    destination text not null,
    intent      integer not null,
    at          integer not null,
    constraint arrivals_are_unique unique (destination, intent)
) strict;

-- What commands have printed, in pieces of one stream each.
create table refrain_outputs (
    run     integer not null,
    attempt integer not null,
    number  integer not null,
    stream  text not null,
    at      integer not null,
    text    text not null,
    primary key (run, attempt, number)
) strict;

-- Commands that must not be executed twice, and of which it is not known how they ended.
create table refrain_begun (
    run     integer not null,
    attempt integer not null,
    at      integer not null,
    primary key (run, attempt)
) strict, without rowid;

create table refrain_counts (
    run          integer not null,
    attempt      integer not null,
    processed    integer not null,
    skipped      integer not null,
    deduplicated integer not null,
    failed       integer not null,
    primary key (run, attempt)
) strict, without rowid;

create table refrain_unit_dedupes (
    run     integer not null,
    attempt integer not null,
    reason  text not null,
    count   integer not null,
    keys    text not null,
    primary key (run, attempt, reason)
) strict, without rowid;

create table refrain_dedupes (
    id    integer primary key autoincrement,
    run   integer not null,
    at    integer not null,
    asked text not null
) strict;
create index refrain_dedupes_run on refrain_dedupes (run, id);

-- What a person should hear of. The subject is what the alarm is about, by its name: a job, a database.
create table refrain_alarms (
    id      integer primary key autoincrement,
    kind    text not null,
    job     integer,
    at      integer not null,
    subject text not null,
    message text not null,
    constraint alarms_are_unique unique (kind, subject, at)
) strict;
