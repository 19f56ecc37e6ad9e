-- The columns of each constraint that makes all rows of a table unique. The primary key of a rowid table has no index.
select json_group_array(i.name)
from pragma_index_list($1, $2) as l join pragma_index_info(l.name, $2) as i
where l."unique" = 1 and l.partial = 0
group by l.name
having count(i.name) = count(*)
union all
select json_group_array(name) from pragma_table_info($1, $2) where pk > 0 having count(*) > 0
