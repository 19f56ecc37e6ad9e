-- Why an attempt did not do its work, for every attempt that did not: error, panicked, timed-out, interrupted, held, in-doubt and
-- others. Null for one that did, and for attempts that an older release ended.
--
-- Older releases know three of these reasons, which decide what comes next, and read them from `reason`. That column stays, and
-- has the reason if it is one of the three.
alter table refrain_runs add column failure text;
alter table refrain_attempts add column failure text;
