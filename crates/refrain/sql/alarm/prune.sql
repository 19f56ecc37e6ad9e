-- Deletes alarms older than the retention, oldest first, a bounded number at a time.
-- $1 before, $2 limit; by the primary key
delete from refrain_alarms where id in (
    select id from (select id, at from refrain_alarms order by id limit $2) as oldest where at < $1
)
