-- The store: what is scheduled, what ran, what is open. Everything lives in a schema of its own.
--
-- `runs` is permanent and narrow, and nothing indexes its state, so the one update at its end touches no index; its
-- pages are filled half, which leaves that update room. An open run stands in exactly one of three places: `queue`
-- (it may begin, or has begun under a lease), `delayed` (not before some time), `lane_waits` (behind another run
-- of its lane). A line of the queue is one job at one priority; a claim reads a line from its front.
-- Instants are microseconds since 1970 in UTC. Texts are compared as bytes.

-- The clock of leases: that of the server, read when the statement runs and not when the transaction began.
create or replace view refrain.clock as
    select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now;

create table refrain.store (
    only_row   boolean not null primary key default true check (only_row),
    id         text collate "C" not null,
    project    text collate "C" not null,
    simulated  boolean not null,
    created_at bigint not null
);

-- `identity` is the first name of a job, under which its units are remembered; a renamed job keeps it.
create table refrain.jobs (
    id        integer generated always as identity primary key,
    name      text collate "C" not null unique,
    identity  text collate "C" not null,
    paused_at bigint
);

-- Every name that a job has or had. It is never given to another one, or the work of the one would count as the other's.
create table refrain.job_names (
    name text collate "C" not null primary key,
    job  integer not null
);

create table refrain.schedules (
    job     integer not null primary key,
    covered bigint,
    next_at bigint
);
create index schedules_next_at on refrain.schedules (next_at, job);

create table refrain.revisions (
    job         integer not null,
    number      integer not null,
    schedule    text not null,
    zone        text not null,
    rules       text not null,
    grid        text not null,
    gap         text not null,
    fold        text not null,
    start       bigint,
    from_at     bigint not null,
    until_at    bigint,
    joins       boolean not null,
    ticks_after bigint not null,
    primary key (job, number)
);

create table refrain.runs (
    id           bigint generated always as identity primary key,
    job          integer not null,
    attempt      integer not null,
    version      integer,
    window_start bigint,
    window_end   bigint,
    opened_at    bigint not null,
    started_at   bigint,
    ended_at     bigint,
    worker       bigint,
    open         boolean not null,
    key          text collate "C" not null,
    outcome      text collate "C",
    message      text,
    payload      text,
    constraint runs_are_unique unique (job, key),
    check (open or outcome is not null)
) with (fillfactor = 50);

create table refrain.queue (
    line      bigint not null,
    run       bigint not null,
    lease     bigint,
    attempt   integer not null,
    spent     integer not null,
    suspicion integer not null,
    lane      boolean not null,
    primary key (line, run)
) with (fillfactor = 50);

create table refrain.delayed (
    run       bigint not null primary key,
    wake_at   bigint not null,
    line      bigint not null,
    attempt   integer not null,
    spent     integer not null,
    suspicion integer not null,
    lane      boolean not null
);
create index delayed_wake_at on refrain.delayed (wake_at, run);

create table refrain.lanes (
    job   integer not null,
    scope text collate "C" not null,
    run   bigint not null,
    primary key (job, scope)
);

create table refrain.lane_waits (
    job     integer not null,
    scope   text collate "C" not null,
    key     text collate "C" not null,
    run     bigint not null,
    line    bigint not null,
    attempt integer not null,
    primary key (job, scope, key)
);

create table refrain.slots (
    job  integer not null,
    slot integer not null,
    run  bigint not null unique,
    primary key (job, slot)
);

create table refrain.workers (
    id         bigint generated always as identity primary key,
    process    text not null,
    started_at bigint not null,
    expires_at bigint not null
);

create table refrain.leases (
    id         bigint not null primary key,
    worker     bigint not null,
    line       bigint not null,
    first_run  bigint not null,
    last_run   bigint not null,
    claimed_at bigint not null
);
create index leases_worker on refrain.leases (worker, id);

create table refrain.attempts (
    run        bigint not null,
    number     integer not null,
    ended      text collate "C" not null,
    started_at bigint,
    ended_at   bigint not null,
    worker     bigint,
    message    text,
    primary key (run, number)
);

create table refrain.cancellations (
    run      bigint not null primary key,
    asked_at bigint not null
);

create table refrain.expansions (
    run    bigint not null primary key,
    scopes bigint not null,
    hash   text collate "C" not null
);

-- Effects, by the fact and the version of its rule. They arrive from intents, as often as it takes, and exist once.
create table refrain.effects (
    id         bigint generated always as identity primary key,
    key        text collate "C" not null,
    version    integer not null,
    name       text collate "C" not null,
    state      text collate "C" not null,
    job        text collate "C",
    run        text collate "C",
    payload    text collate "C",
    arrived_at bigint not null,
    constraint effects_are_unique unique (key, version)
);

create table refrain.effect_dedupes (
    id      bigint generated always as identity primary key,
    effect  bigint not null,
    version integer not null,
    at      bigint not null,
    asked   text collate "C" not null
);
create index effect_dedupes_effect on refrain.effect_dedupes (effect, id);

-- Which intents of which database have been copied. Copying one again does no harm, for what it wishes for exists once; but
-- it must not look as if somebody had asked again.
create table refrain.arrivals (
    id          bigint generated always as identity primary key,
    destination text collate "C" not null,
    intent      bigint not null,
    at          bigint not null,
    constraint arrivals_are_unique unique (destination, intent)
);

-- What commands have printed, in pieces of one stream each.
create table refrain.outputs (
    run     bigint not null,
    attempt integer not null,
    number  integer not null,
    stream  text collate "C" not null,
    at      bigint not null,
    text    text collate "C" not null,
    primary key (run, attempt, number)
);

-- Commands that must not be executed twice, and of which it is not known how they ended.
create table refrain.begun (
    run     bigint not null,
    attempt integer not null,
    at      bigint not null,
    primary key (run, attempt)
);

create table refrain.counts (
    run          bigint not null,
    attempt      integer not null,
    processed    bigint not null,
    skipped      bigint not null,
    deduplicated bigint not null,
    failed       bigint not null,
    primary key (run, attempt)
);

create table refrain.unit_dedupes (
    run     bigint not null,
    attempt integer not null,
    reason  text collate "C" not null,
    count   bigint not null,
    keys    text collate "C" not null,
    primary key (run, attempt, reason)
);

create table refrain.dedupes (
    id    bigint generated always as identity primary key,
    run   bigint not null,
    at    bigint not null,
    asked text collate "C" not null
);
create index dedupes_run on refrain.dedupes (run, id);

-- What a person should hear of. The subject is what the alarm is about, by its name: a job, a database.
create table refrain.alarms (
    id      bigint generated always as identity primary key,
    kind    text collate "C" not null,
    job     integer,
    at      bigint not null,
    subject text collate "C" not null,
    message text not null,
    constraint alarms_are_unique unique (kind, subject, at)
);
