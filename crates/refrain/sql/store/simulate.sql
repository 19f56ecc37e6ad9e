-- Makes a store simulated for good.
-- $1 true
update refrain_store set simulated = $1
