-- Whose store this is, and whether its clock may be set. No rows: it has no owner yet.
select id, project, simulated from refrain_store
