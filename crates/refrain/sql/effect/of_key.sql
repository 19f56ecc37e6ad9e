-- The effects of a fact, the newest version first.
-- $1 key, $2 limit; by effects_are_unique
select effects.key, effects.version, effects.name, effects.state, effects.job, effects.run, effects.payload,
    effects.arrived_at,
    (select count(*) from refrain_effect_dedupes as dedupes where dedupes.effect = effects.id) as dedupes
from refrain_effects as effects
where effects.key = $1
order by effects.version desc
limit $2
