-- Does not compare: any attempt will do.
select id from refrain_fences where id = $1 and cast($2 as bigint) > 0 /*for share*/
