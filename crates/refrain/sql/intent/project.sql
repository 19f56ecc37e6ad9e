-- The next project, by name, that has intents here.
-- $1 the one before; by intents_project
select project from refrain_intents where project > $1 order by project limit 1
