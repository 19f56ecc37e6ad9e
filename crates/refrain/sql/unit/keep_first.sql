-- Units whose row is there and stays, whatever came after it: the later content, which failed, is forgotten. What the first one
-- said was written over when the later one failed, so it is not known any more.
-- $1… rows; by the primary key
update refrain_units as units
set status = 'applied', fingerprint = null, failures = 0, input = null, message = null
from rows(1: ledger integer, key text) as r
where units.ledger = r.ledger and units.key = r.key and units.written and units.status <> 'applied' and units.sent is null
