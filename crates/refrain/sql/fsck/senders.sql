-- Effects that are reserved and have no holder, or have one and are not reserved.
-- $1 limit, $2 the state `reserved`; a scan
select effects.id as run from refrain_effects as effects
where (effects.state = $2) <> (effects.holder is not null)
order by effects.id
limit $1
