-- The horizon of this database: every transaction with a lower number has ended. And since when the oldest transaction
-- that writes has been going on, which is what keeps the horizon where it is: anywhere on the server, for its databases
-- draw their numbers together, and also one that was only prepared.
select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as below,
    (select cast(extract(epoch from clock_timestamp() - min(since)) * 1000000 as bigint)
     from (select xact_start as since from pg_stat_activity where backend_xid is not null
           union all select prepared from pg_prepared_xacts) as writers) as pinned_for
