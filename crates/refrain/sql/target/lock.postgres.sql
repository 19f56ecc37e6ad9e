-- Allows one publish at a time into a table, by its quoted name; other readers and writers do not wait.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('refrain/publish', cast(cast($1 as pg_catalog.regclass) as pg_catalog.oid)::bigint))
