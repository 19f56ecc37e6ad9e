-- Effects in a state that does not exist.
-- $1 limit, $2… the states; a scan
select effects.id as run from refrain_effects as effects
where effects.state not in (select r.word from rows(2: word text) as r)
order by effects.id
limit $1
