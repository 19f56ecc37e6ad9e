-- Decisions of people: who had what done or undone, when and why. A decision about runs or jobs is written in the transaction
-- that carries it out. `who` is null where a program decided and named no person. Never pruned: there are few, and who
-- had something done twice is asked years later.
create table refrain.audit (
    id      bigint generated always as identity primary key,
    at      bigint not null,
    who     text,
    verb    text collate "C" not null,
    subject text collate "C" not null,
    run     bigint,
    unit    text collate "C",
    detail  text,
    why     text
);
create index audit_run on refrain.audit (run, id);
create index audit_unit on refrain.audit (unit, id);

-- Why an attempt did not do its work, where that decides what comes next: it took too long, or a person must decide.
alter table refrain.runs add column reason text collate "C";
alter table refrain.attempts add column reason text collate "C";
update refrain.runs set reason = 'held' where not open and outcome = 'failed' and id in (select run from refrain.begun);

-- The attempt with which a person had the work of a run done again, for as long as that is not done.
alter table refrain.runs add column redo integer;
