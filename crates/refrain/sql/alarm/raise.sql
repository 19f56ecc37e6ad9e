-- Raises an alarm once, although several engines that watch the same store detect it.
-- $1 kind, $2 job, $3 at, $4 subject, $5 message; by alarms_are_unique
insert into refrain_alarms (kind, job, at, subject, message) values ($1, $2, $3, $4, $5)
on conflict (kind, subject, at) do nothing
