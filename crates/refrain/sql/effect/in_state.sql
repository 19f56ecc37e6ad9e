-- Effects in one of the states that need an operator, or that are not sent; the oldest first.
-- $1 state, $2 after this one, $3 limit; by effects_open
select columns(effect) from refrain_effects as effects
where effects.state in ('waiting', 'refused', 'in-doubt', 'suppressed') and effects.state = $1 and effects.id > $2
order by effects.id
limit $3
