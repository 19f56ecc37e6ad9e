-- Locks the effects that a worker has reserved.
-- $1 worker; by effects_holder
select id from refrain_effects where holder = $1 order by key, version /*for update*/
