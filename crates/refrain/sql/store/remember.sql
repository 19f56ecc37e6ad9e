-- An operator has checked everything that a restored store may have forgotten.
update refrain_store set forgets_before = null
