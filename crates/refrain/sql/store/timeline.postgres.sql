-- The timeline of the server of a transaction: another one than before means that a standby has taken over and may have lost commits.
select substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as timeline
