-- Reserves an effect for a send. The caller holds the lock on its fact.
-- $1 effect, $2 state, $3 worker, $4 nonce, $5 what is sent now; by the primary key
update refrain_effects
set state = $2, holder = $3, nonce = $4, sends = sends + 1, first_sent_at = coalesce(first_sent_at, (select now from refrain_clock)),
    last_sent_at = (select now from refrain_clock), changed_at = (select now from refrain_clock), message = null, payload = coalesce($5, payload)
where id = $1
returning sends
