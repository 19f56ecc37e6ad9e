-- Where the source was read from when a unit failed, or a line was no unit: the position of its checkpoint. There, what was
-- mended at the source is found again.

alter table refrain_units add column place text;
