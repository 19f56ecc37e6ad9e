-- Records a decision of an operator.
-- $1 who, $2 verb, $3 subject, $4 run, $5 unit, $6 detail, $7 why
insert into refrain_audit (at, who, verb, subject, run, unit, detail, why)
values ((select now from refrain_clock), $1, $2, $3, $4, $5, $6, $7)
