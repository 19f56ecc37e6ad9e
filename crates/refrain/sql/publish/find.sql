-- What this attempt has published: the answer to its commit may have been lost.
-- $1 ledger, $2 fence, $3 attempt, $4 nonce; by the beginning of the primary key, a row for each target of one run
select target, rows from refrain_publishes where ledger = $1 and fence = $2 and attempt = $3 and nonce = $4
