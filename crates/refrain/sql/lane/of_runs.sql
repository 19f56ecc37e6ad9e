-- Those of these runs that wait for their lane, for a reader.
-- $1… rows; by the primary key
select waits.run, waits.line, cast(waits.attempt as bigint) as attempt
from refrain_lane_waits as waits join rows(1: job integer, scope text, key text) as r
    on waits.job = r.job and waits.scope = r.scope and waits.key = r.key
