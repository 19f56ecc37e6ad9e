-- Whose store this is. No rows: it has no owner yet.
select project from refrain_store
