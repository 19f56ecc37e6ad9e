-- Attempts of these runs that wait for their time, for a reader.
-- $1… rows; by the primary key
select delayed.run, delayed.wake_at, delayed.line, cast(delayed.attempt as bigint) as attempt
from refrain_delayed as delayed join rows(1: run integer) as r on delayed.run = r.run
