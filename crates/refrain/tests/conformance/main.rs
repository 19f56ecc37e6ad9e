//! The promises of the store and the engine, tested on a SQLite file, on PostgreSQL, and on
//! PostgreSQL behind a pooler that gives each transaction another connection.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test a panic is the failure report"
)]

mod again;
mod alarms;
mod cancelling;
mod catch_up;
mod clocks;
mod concurrency;
mod decisions;
mod edits;
mod effects;
mod endings;
mod fsck;
mod lanes;
mod late;
mod opening;
mod passing;
mod pausing;
mod refusals;
mod renaming;
mod retries;
mod scopes;
mod senders;
mod status;
mod upkeep;
mod why;
