-- One publish at a time into a table, by its quoted name; whoever else reads or writes it is not kept waiting.
select pg_advisory_xact_lock(hashtextextended('refrain/publish', cast(cast($1 as regclass) as oid)::bigint))
