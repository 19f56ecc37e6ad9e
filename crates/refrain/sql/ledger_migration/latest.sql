-- The highest number among the applied migrations, 0 if there is none.
select coalesce(cast(max(number) as integer), 0) as number from refrain_ledger_migrations
