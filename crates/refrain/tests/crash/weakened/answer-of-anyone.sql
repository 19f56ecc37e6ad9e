-- Records an answer, even if its sender does not hold the effect any more: not `holder = $2 and sends = $3`.
update refrain_effects
set state = $4, holder = null, nonce = null, changed_at = (select now from refrain_clock), receipt = $6, message = $7,
    unanswered_at = case when $5 then coalesce(unanswered_at, last_sent_at) else unanswered_at end
where id = $1 and coalesce($2, $3) is not null
