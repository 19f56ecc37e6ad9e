-- Deletes the entries of pages, from one to the last of the same source.
-- $1 ledger, $2 first key, $3 the key after the last; by the primary key
delete from refrain_units where ledger = $1 and key >= $2 and key < $3 and status = 'applied'
