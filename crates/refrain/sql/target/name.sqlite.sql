-- What a table is called, with its schema, in whatever letters it was written; and whether it is a view.
select schema || '.' || name, type = 'view' from pragma_table_list where schema = $2 and name = $1 collate nocase
