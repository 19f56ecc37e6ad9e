-- The output of the commands of a run, in order, after a position.
-- $1 run, $2 attempt, $3 number, $4 limit; by the primary key
select attempt, number, stream, at, text from refrain_outputs
where run = $1 and (attempt, number) > ($2, $3)
order by attempt, number
limit $4
