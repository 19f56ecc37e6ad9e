-- The columns of a table, by its quoted name: name, type, and whether the column is generated.
select a.attname::pg_catalog.text, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attgenerated <> '' or a.attidentity = 'a'
from pg_catalog.pg_attribute as a
where a.attrelid = pg_catalog.to_regclass($1) and a.attnum > 0 and not a.attisdropped
order by a.attnum
