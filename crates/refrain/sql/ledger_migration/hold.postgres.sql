-- Waits for every transaction that holds a fence, and keeps others from holding one until this migration is committed: an attempt
-- of an older release writes before it, or reads after it that it may not. A file has one writer anyway.
lock table refrain.fences in exclusive mode
