-- The oldest schema that a release must know to use these tables. A migration without a record of it is a breaking one.
select coalesce(cast(max(coalesce(oldest, number)) as integer), 0) as number from refrain_migrations
