-- The columns of a table, by its quoted name: name, type, and whether only the server may fill it.
select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '' or a.attidentity = 'a'
from pg_attribute as a
where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped
order by a.attnum
