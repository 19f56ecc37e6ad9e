-- Records requests for existing effects: each is an event of its own with the first request. A request with another payload
-- under the same key and version is marked.
-- $1 who asked, $2… rows; by effects_are_unique
insert into refrain_effect_dedupes (effect, version, at, asked)
select known.id, r.version, (select now from refrain_clock),
    case when known.version > r.version then $1 || ' of a lower version'
        when r.payload is null or r.payload = known.payload then $1
        else $1 || ' with another payload' end
from rows(2: key text, version integer, payload text) as r join refrain_effects as known on known.key = r.key
    and known.version = (select max(highest.version) from refrain_effects as highest where highest.key = r.key)
order by known.id, r.version
