-- Numbers the holders of lanes: each number is higher than that of every earlier holder, whatever the clock says.
-- $1 job, $2 the least step, $3… rows; by the primary key
insert into refrain_lane_numbers as lanes (job, scope, number)
select $1, r.scope, r.number from rows(3: scope text, number integer) as r where true order by r.scope
on conflict (job, scope) do update
set number = case when lanes.number < excluded.number then excluded.number else lanes.number + $2 end
returning scope, number
