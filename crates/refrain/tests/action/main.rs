//! Commands: no process survives its attempt, no two attempts overlap, and output is stored.
//!
//! `weakened.rs` removes one guard at a time and shows that these tests notice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

mod ends;
mod held;
mod literal;
mod output;
mod reuse;
mod tree;
mod weakened;
mod workspace;
