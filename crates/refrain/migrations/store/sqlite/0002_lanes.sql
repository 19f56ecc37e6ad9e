-- An attempt that lines up again after a back-off keeps what it has spent and how far it is suspected.
alter table refrain_lane_waits add column spent integer not null default 0;
alter table refrain_lane_waits add column suspicion integer not null default 0;

-- Whether a file of the project describes the job. Such a job has no timetable any more when its file is gone; one that a
-- program registered is not judged by files.
alter table refrain_jobs add column from_file integer not null default 0 check (from_file in (0, 1));
