-- The horizon of this server: every transaction with a lower number has ended. Also the start of the oldest writing transaction,
-- which holds the horizon back; numbers are those of all databases together.
select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as below,
    cast(extract(epoch from least(
        (select min(xact_start) from pg_stat_activity where backend_xid is not null),
        (select min(prepared) from pg_prepared_xacts)
    )) * 1000000 as bigint) as pinned_since,
    cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now
