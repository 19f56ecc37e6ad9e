-- Makes room for the revisions as they are after an edit.
-- $1 job
delete from refrain_revisions where job = $1
