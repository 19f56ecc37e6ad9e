-- Content with a fence that is lower, too; one that is higher is still a no.
select id from refrain_fences where id = $1 and attempt <= $2 /*for share*/
