-- Records effects. One that is not returned existed already, or has a lower version than an effect of the same fact.
-- $1 state, $2… rows; by effects_are_unique
insert into refrain_effects (key, version, name, state, job, run, payload, arrived_at)
select r.key, r.version, r.name, $1, r.job, r.run, r.payload, (select now from refrain_clock)
from rows(2: key text, version integer, name text, job text, run text, payload text) as r
where not exists (select 1 from refrain_effects as known where known.key = r.key and known.version > r.version)
order by r.key, r.version
on conflict (key, version) do nothing
returning key, version
