-- Records which intents have arrived. Intents that are not returned have arrived before.
-- $1 destination, $2… rows; by arrivals_are_unique
insert into refrain_arrivals (destination, intent, at)
select $1, r.intent, (select now from refrain_clock)
from rows(2: intent integer) as r
where true
order by r.intent
on conflict (destination, intent) do nothing
returning intent
