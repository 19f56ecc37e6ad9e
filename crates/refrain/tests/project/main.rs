//! Projects on disk: what job files say happens once, on real databases.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test a panic is the failure report"
)]

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
