-- Whether this file has the table of migrations.
-- $1 its name without the prefix
select cast(count(*) as integer) as number from sqlite_schema where type = 'table' and name = 'refrain_' || $1
