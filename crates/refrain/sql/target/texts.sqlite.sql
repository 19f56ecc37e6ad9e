-- The text columns of a staged table. $1 the table: created from a query, it has the affinity of a column as its type.
select name from pragma_table_info($1, 'temp') where type = 'TEXT'
