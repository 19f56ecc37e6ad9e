-- The decisions of operators, newest first.
-- $1 limit; by the primary key
select at, who, verb, subject, unit, detail, why from refrain_audit order by id desc limit $1
