-- How many intents of a project are for another store, and so are never relayed by this one.
-- $1 project, $2 store; by intents_project
select count(*) from refrain_intents where project = $1 and store <> $2
