-- Waits until no transaction of this attempt is in flight, and keeps another one from beginning. Each of them holds the fence in
-- shared mode, even one whose connection is gone and whose commit is not finished.
-- $1 fence, $2 attempt, $3 nonce; by the primary key
select id from refrain_fences where id = $1 and attempt = $2 and nonce = $3 /*for update*/
