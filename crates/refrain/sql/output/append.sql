-- Stores output of a command. Once: after a lost answer, output that is sent again exists already.
-- $1 run, $2 attempt, $3… rows; by the primary key
insert into refrain_outputs (run, attempt, number, stream, at, text)
select cast($1 as bigint), cast($2 as integer), r.number, r.stream, r.at, r.text
from rows(3: number integer, stream text, at integer, text text) as r
where true
order by r.number
on conflict (run, attempt, number) do nothing
