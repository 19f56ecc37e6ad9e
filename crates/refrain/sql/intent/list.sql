-- Intents of a project, with the runs that wrote them. A payload that is too long is left out.
-- $1 project, $2 the first, $3 the last, $4 the longest payload; by intents_project
select intents.id, intents.kind, intents.name, intents.key, cast(intents.version as bigint) as version, intents.store,
    cast(octet_length(intents.payload) as bigint) as bytes,
    case when octet_length(intents.payload) <= $4 then intents.payload end as payload,
    (select fences.job from refrain_fences as fences where fences.id = intents.fence) as job,
    (select fences.run from refrain_fences as fences where fences.id = intents.fence) as run
from refrain_intents as intents
where intents.project = $1 and intents.id between $2 and $3
order by intents.id
