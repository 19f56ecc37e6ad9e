-- Records how far windows are opened, and when to look again.
-- $1 job, $2 covered, $3 next_at
update refrain_schedules set covered = $2, next_at = $3 where job = $1
