-- The units that attempts of a run found already done, by attempt and reason.
-- $1 run; by the primary key
select attempt, reason, count, keys from refrain_unit_dedupes where run = $1 order by attempt, reason
