-- Decisions of people: who had what done or undone, when and why. A decision about runs or jobs is written in the transaction
-- that carries it out. `who` is null where a program decided and named no person. Never pruned: there are few, and who
-- had something done twice is asked years later.
create table refrain_audit (
    id      integer primary key autoincrement,
    at      integer not null,
    who     text,
    verb    text not null,
    subject text not null,
    run     integer,
    unit    text,
    detail  text,
    why     text
) strict;
create index refrain_audit_run on refrain_audit (run, id);
create index refrain_audit_unit on refrain_audit (unit, id);

-- Why an attempt did not do its work, where that decides what comes next: it took too long, or a person must decide.
alter table refrain_runs add column reason text;
alter table refrain_attempts add column reason text;
update refrain_runs set reason = 'held' where not open and outcome = 'failed' and id in (select run from refrain_begun);

-- The attempt with which a person had the work of a run done again, for as long as that is not done.
alter table refrain_runs add column redo integer;
