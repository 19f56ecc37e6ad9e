-- Waits until no transaction of this attempt is under way any more, and keeps another one from beginning. Each of them holds the
-- fence in a shared way, also one whose connection is gone and whose commit is not done yet.
-- $1 fence, $2 attempt, $3 nonce; by the primary key
select id from refrain_fences where id = $1 and attempt = $2 and nonce = $3 /*for update*/
