-- The columns of each constraint that makes all rows of a table unique, by its quoted name.
select pg_catalog.to_json(array(
    select a.attname::pg_catalog.text from pg_catalog.unnest(i.indkey::smallint[]) with ordinality as k (number, place)
    join pg_catalog.pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.number
    where k.place <= i.indnkeyatts
    order by k.place
))::pg_catalog.text
from pg_catalog.pg_index as i
where i.indrelid = pg_catalog.to_regclass($1) and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
