-- The horizon of this database: every transaction with a lower number has ended. And since when the oldest transaction
-- that writes has been going on, which is what keeps the horizon where it is.
select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as below,
    (select cast(extract(epoch from clock_timestamp() - min(xact_start)) * 1000000 as bigint)
     from pg_stat_activity where backend_xid is not null and datname = current_database()) as pinned_for
