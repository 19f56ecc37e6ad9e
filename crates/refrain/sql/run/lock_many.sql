-- Holds runs that go on with another attempt: a wish to call one of them off is there before the look for it, or comes after the commit.
-- $1… rows
select id from refrain_runs where id in (select r.run from rows(1: run integer) as r) order by id /*for update*/
