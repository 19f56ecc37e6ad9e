-- The full name of a table with its schema, case-insensitively; and whether it is a view.
select schema || '.' || name, type = 'view' from pragma_table_list where schema = $2 and name = $1 collate nocase
