-- Effects, the newest first.
-- $1 limit; by the primary key
select columns(effect) from refrain_effects as effects
order by effects.id desc
limit $1
