-- Deletes the revisions of a job before those after an edit are inserted.
-- $1 job
delete from refrain_revisions where job = $1
