-- Does not compare: any attempt will do.
select id, cast($4 as bigint) as lane, cast(0 as integer) as oldest from refrain_fences
where id = $1 and cast($2 as bigint) > 0 and cast($3 as bigint) >= 0 /*for share*/
