-- The decisions of operators about a unit, oldest first.
-- $1 key, $2 limit; by audit_unit
select at, who, verb, subject, unit, detail, why from refrain_audit where unit = $1 order by id limit $2
