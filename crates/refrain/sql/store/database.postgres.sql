-- The oid of this database.
select cast(oid as text) as database from pg_database where datname = current_database()
