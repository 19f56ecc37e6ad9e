-- Locks the fence of a run, and that of its lane, until the transaction ends. No row: a newer attempt has raised the run's. No
-- `lane`: the lane has another holder. `oldest`: the oldest schema that a release must know to use these tables, as in
-- ledger_migration/oldest.sql; the tables may have been migrated since the attempt began.
-- Shared, so that batches of one attempt do not wait for one another; an attempt that raises it waits for all of them.
-- $1 fence, $2 attempt, $3 nonce, $4 fence of the lane or null; by the primary keys
select fences.id,
    (select lanes.id from refrain_lane_fences as lanes
     where lanes.id = $4 and lanes.number = $3
     /*for share*/) as lane,
    (select coalesce(cast(max(coalesce(oldest, number)) as integer), 0) from refrain_ledger_migrations) as oldest
from refrain_fences as fences
where fences.id = $1 and fences.attempt = $2 and fences.nonce = $3 /*for share of fences*/
