-- Locks a fact until the end of the transaction, also if nothing is recorded about it yet: rows that another transaction has just
-- inserted cannot be locked. The first number stands for this kind of lock; two facts may share the second one, and then wait for each
-- other. SQLite has one writer.
-- $1 key
select cast(pg_advisory_xact_lock(1380271698, hashtext($1)) as text) as locked
