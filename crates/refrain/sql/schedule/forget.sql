-- Deletes all schedules of a store in which nothing was opened.
delete from refrain_schedules
