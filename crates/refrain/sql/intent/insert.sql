-- Writes intents next to the rows that caused them. Nothing is unique here, so there is nothing to wait for. An intent without
-- a store is for the store that this database belongs to.
-- $1 project, $2 store, $3 fence, $4 attempt, $5… rows
insert into refrain_intents (project, kind, name, key, version, store, fence, attempt, payload)
select $1, r.kind, r.name, r.key, r.version, coalesce($2, (select store from refrain_projects where name = $1)),
    $3, $4, r.payload
from rows(5: kind text, name text, key text, version integer, payload text) as r
