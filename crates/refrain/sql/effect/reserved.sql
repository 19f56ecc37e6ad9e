-- Reserved effects, and whether their workers are silent: expired, or gone without a trace.
-- $1 limit; by effects_holder
select columns(effect), workers.process,
    case when workers.id is null or workers.expires_at <= (select now from refrain_clock) then 1 else 0 end as is_silent
from refrain_effects as effects left join refrain_workers as workers on workers.id = effects.holder
where effects.holder is not null
order by effects.holder, effects.key, effects.version
limit $1
