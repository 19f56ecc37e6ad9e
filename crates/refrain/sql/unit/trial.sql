-- How many units of a run were parked in advance by the last earlier attempt that left any.
-- $1 ledger, $2 fence, $3 this attempt; by units_unsettled
select attempt, count(*) as units from refrain_units
where ledger = $1 and status <> 'applied' and failures < 0 and fence = $2 and attempt < $3
group by attempt order by attempt desc limit 1
