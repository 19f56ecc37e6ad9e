-- Locks runs that get another attempt: a cancellation of one of them comes before the lookup for it, or after the commit.
-- $1… rows
select id from refrain_runs where id in (select r.run from rows(1: run integer) as r) order by id /*for update*/
