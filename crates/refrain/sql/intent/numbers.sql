-- The numbers of a project's intents, one page. A number can be read whatever the other columns contain.
-- $1 project, $2 the last one of the previous page, $3 limit; by intents_project
select id from refrain_intents where project = $1 and id > $2 order by id limit $3
