-- The columns of a table: name, type, and whether the column is generated. Tables of other schemas are found by schema.
select name, type, hidden in (2, 3) from pragma_table_xinfo($1, $2) where hidden <> 1 order by cid
