-- Every attempt has its place.
select cast($4 as integer) as attempt
where cast($1 as bigint) > 0 and cast($2 as bigint) > 0 and cast($3 as bigint) > 0
