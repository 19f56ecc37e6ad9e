-- Units that a run has left unapplied in a ledger, one of them, and how many are in doubt.
-- $1 ledger, $2 fence; by units_unsettled
select count(*) as count, min(key) as first,
    count(case when status = 'parked' and sent is not null then 1 end) as doubtful
from refrain_units
where ledger = $1 and status <> 'applied' and fence = $2
