-- The next project, by name, that has intents here.
-- $1 the previous one; by intents_project
select project from refrain_intents where project > $1 order by project limit 1
