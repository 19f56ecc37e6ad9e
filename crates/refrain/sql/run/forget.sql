-- Drops what a finished run was given and what it said, after its time; that it ran, and how it ended, stays.
-- $1 ended before, $2 and $3 first and last run of this stretch; by the primary key
update refrain_runs set payload = null, message = null
where id between $2 and $3 and not open and ended_at < $1 and (payload is not null or message is not null)
