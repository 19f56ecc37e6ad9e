-- Gives a new store its id and its project, once.
-- $1 id, $2 project, $3 simulated
insert into refrain_store (only_row, id, project, simulated, created_at)
values (true, $1, $2, $3, (select now from refrain_clock))
on conflict do nothing
