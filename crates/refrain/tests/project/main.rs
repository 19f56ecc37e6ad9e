//! Projects on disk: what job files say is what happens, on real databases, once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test a panic is the failure report"
)]

use refrain_harness as support;
use refrain_harness::both_databases;
use refrain_harness::shop;

mod accounting;
mod commands;
mod held;
mod killed;
mod once;
mod queued;
mod recovered;
mod refusals;
mod renaming;
mod scopes;
mod typed;
