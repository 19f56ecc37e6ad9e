-- Takes slots; the primary key rejects a slot that is taken.
-- $1 job, $2… rows
insert into refrain_slots (job, slot, run)
select $1, r.slot, r.run from rows(2: slot integer, run integer) as r where true order by r.slot
