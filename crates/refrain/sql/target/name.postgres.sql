-- What a table is called, with its schema, by its quoted name, however that was written; and whether it is a view.
select n.nspname || '.' || c.relname, c.relkind = 'v' from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = pg_catalog.to_regclass($1)
