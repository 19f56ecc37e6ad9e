-- The columns of a staged table that hold texts. $1 the table: made of a query, it has a column's affinity for its type.
select name from pragma_table_info($1, 'temp') where type = 'TEXT'
