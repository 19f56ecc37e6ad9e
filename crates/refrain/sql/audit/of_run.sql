-- The decisions of operators about a run, oldest first.
-- $1 run, $2 limit; by audit_run
select at, who, verb, subject, unit, detail, why from refrain_audit where run = $1 order by id limit $2
