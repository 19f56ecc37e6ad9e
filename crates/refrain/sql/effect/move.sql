-- Moves an effect to another state; a worker that holds it loses it. The caller holds the lock on its fact.
-- $1 effect, $2 state, $3 receipt, $4 message; by the primary key
update refrain_effects
set state = $2, holder = null, nonce = null, changed_at = (select now from refrain_clock), receipt = coalesce($3, receipt), message = $4
where id = $1
