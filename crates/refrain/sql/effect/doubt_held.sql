-- Puts the effects that a worker has reserved into doubt: it is gone, and may have sent them. They are locked before.
-- $1 worker, $2 state, $3 message; by effects_holder
update refrain_effects
set state = $2, holder = null, nonce = null, changed_at = (select now from refrain_clock), message = $3,
    unanswered_at = coalesce(unanswered_at, last_sent_at)
where holder = $1
