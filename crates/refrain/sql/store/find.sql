-- The owner and the place of the store, and whether it is simulated. No row: it has no owner yet.
select id, project, simulated, created_at, place, doubt, recovered_at, forgets_before from refrain_store
