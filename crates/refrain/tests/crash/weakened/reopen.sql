-- Asks for another attempt, whether there is one or not.
update refrain_runs set open = true where id = $1 and cast($2 as bigint) >= 0 and cast($3 as text) <> ''
