-- Whether this database has the table of migrations.
-- $1 its name
select cast(count(*) as integer) as number from pg_tables where schemaname = 'refrain' and tablename = $1
