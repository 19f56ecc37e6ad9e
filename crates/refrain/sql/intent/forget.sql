-- Deletes intents that have arrived. A concurrent relay may delete the same ones.
-- $1… rows; by the primary key
delete from refrain_intents where id in (
    select intents.id from refrain_intents as intents where intents.id in (select r.id from rows(1: id integer) as r)
    order by intents.id /*for update skip locked*/
)
