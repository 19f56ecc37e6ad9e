-- What is applied under a key, kept apart from the last try of it.
--
-- A row tells of the last try. While that try is not applied, these columns tell what is applied all the same: the content and
-- version whose rows are there or whose call was made, when, and by which attempt. A row whose status is `applied` tells that by
-- itself, and all of these are null there; so no row that exists needs to be rewritten. Of a row whose try failed before these
-- columns were there, only `written` says that something is applied, not what: such a unit is applied again when it comes.
-- `applied_at` without `applied_version`: something was applied then, and a later request may have changed it; nobody knows.

alter table refrain.units
    add column applied_version     integer,
    add column applied_fingerprint bigint,
    add column applied_at          bigint,
    add column applied_fence       bigint,
    add column applied_attempt     integer;
