-- The full name of a table with its schema, by its quoted name; and whether it is a view.
select n.nspname || '.' || c.relname, c.relkind = 'v' from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = pg_catalog.to_regclass($1)
