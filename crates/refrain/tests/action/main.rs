//! Commands: whatever they do, and whatever is done to their worker, nothing of them survives, nothing runs beside its
//! successor, and what they print is kept.
//!
//! `weakened.rs` takes away one guard at a time and shows that these stories notice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

use refrain_harness as support;
use refrain_harness::both_databases;

mod desk;
mod ends;
mod held;
mod literal;
mod output;
mod reuse;
mod tree;
mod weakened;
