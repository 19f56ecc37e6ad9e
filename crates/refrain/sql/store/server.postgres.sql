-- The identity of this server, and its timeline: the beginning of the name of its log.
select cast(control.system_identifier as text) as system,
    substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as timeline
from pg_control_system() as control
