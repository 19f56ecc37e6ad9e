-- The numbers of a project's intents, a page of them. A number can be read whatever else stands in the row.
-- $1 project, $2 the last one of the page before, $3 limit; by intents_project
select id from refrain_intents where project = $1 and id > $2 order by id limit $3
