-- Whose store this is, where it was, and whether its clock may be set. No rows: it has no owner yet.
select id, project, simulated, created_at, place, doubt, recovered_at, forgets_before from refrain_store
