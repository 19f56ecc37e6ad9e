-- Keeps the fence where it is until the transaction ends. No row: a newer attempt has raised it.
-- Shared, so that batches of one attempt do not wait for one another; whoever raises it waits for all of them.
-- $1 fence, $2 attempt; by the primary key
select id from refrain_fences where id = $1 and attempt = $2 /*for share*/
