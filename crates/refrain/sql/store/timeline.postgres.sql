-- The timeline on which the server of a transaction writes: another one than before has taken over, and may have lost commits.
select substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as timeline
