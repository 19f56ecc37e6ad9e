-- The effects of a fact, the newest version first.
-- $1 key, $2 limit; by effects_are_unique
select columns(effect) from refrain_effects as effects
where effects.key = $1
order by effects.version desc
limit $2
