-- The versions of a fact.
-- $1 key; by effects_are_unique
select id, version, state, holder, nonce, sends, first_sent_at, last_sent_at, unanswered_at, receipt, message,
    coalesce(changed_at, arrived_at) as changed_at, (select now from refrain_clock) as now
from refrain_effects
where key = $1
order by version
