-- The columns of a table: name, type, and whether only the database may fill it. A table of another schema is found by that.
select name, type, hidden in (2, 3) from pragma_table_xinfo($1, $2) where hidden <> 1 order by cid
