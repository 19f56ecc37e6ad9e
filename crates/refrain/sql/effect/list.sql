-- Effects, the newest first.
-- $1 limit; by the primary key
select effects.key, effects.version, effects.name, effects.state, effects.job, effects.run, effects.payload,
    effects.arrived_at,
    (select count(*) from refrain_effect_dedupes as dedupes where dedupes.effect = effects.id) as dedupes
from refrain_effects as effects
order by effects.id desc
limit $1
