-- The last attempt before this one whose command has no recorded end.
-- $1 run, $2 attempt; by the primary key
select attempt from refrain_begun where run = $1 and attempt < $2 order by attempt desc limit 1
