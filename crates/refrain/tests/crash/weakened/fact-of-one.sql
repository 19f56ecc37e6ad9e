-- Reads one version of a fact only, as if no other were recorded.
select id, version, state, holder, nonce, sends, first_sent_at, last_sent_at, unanswered_at, receipt, message,
    coalesce(changed_at, arrived_at) as changed_at, (select now from refrain_clock) as now
from refrain_effects
where key = $1 and version = 2
order by version
