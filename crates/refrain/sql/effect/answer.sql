-- Records how the send of an effect ended, if its worker still holds it.
-- $1 effect, $2 worker, $3 number of the send, $4 state, $5 whether the send had no answer, $6 receipt, $7 message; by the primary key
update refrain_effects
set state = $4, holder = null, nonce = null, changed_at = (select now from refrain_clock), receipt = $6, message = $7,
    unanswered_at = case when $5 then coalesce(unanswered_at, last_sent_at) else unanswered_at end
where id = $1 and holder = $2 and sends = $3
