-- Deletes all timetables of a store in which nothing was opened.
delete from refrain_revisions
