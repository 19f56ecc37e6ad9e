-- Content with a fence that is lower, too; one that is higher is still a no.
select id, cast($4 as bigint) as lane, cast(0 as integer) as oldest from refrain_fences
where id = $1 and attempt <= $2 and cast($3 as bigint) >= 0 /*for share*/
