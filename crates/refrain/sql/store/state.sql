-- An operator has decided what the store is: it is not in doubt any more, in this place.
-- $1 id, $2 place, $3 whether it may have forgotten what it has done
update refrain_store
set id = $1, place = $2, doubt = null, recovered_at = (select now from refrain_clock),
    forgets_before = case when $3 then (select now from refrain_clock) else forgets_before end
