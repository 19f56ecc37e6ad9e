-- Locks lanes that are about to be left, in order.
-- $1… rows
select lanes.job, lanes.scope, lanes.run
from refrain_lanes as lanes join rows(1: job integer, scope text) as r
    on lanes.job = r.job and lanes.scope = r.scope
order by lanes.job, lanes.scope /*for update of lanes*/
