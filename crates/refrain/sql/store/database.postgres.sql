-- The number of this database at its server.
select cast(oid as text) as database from pg_database where datname = current_database()
