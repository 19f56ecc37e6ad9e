delete from totals where d = :day and s = :scope;
delete from ${TABLE} where x = 'never closed;
