//! The promises of the ledger beside the rows of an application, tested in a SQLite file and in a
//! PostgreSQL database that is not the store's.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test a panic is the failure report"
)]

mod shop;

mod applied;
mod behind;
mod changes;
mod checkpoints;
mod claims;
mod company;
mod conflicts;
mod cursors;
mod destinations;
mod failures;
mod fences;
mod given_twice;
mod horizon;
mod in_flight;
mod intents;
mod lanes;
mod left_running;
mod lost;
mod many;
mod migrations;
mod races;
mod relays;
mod surrogate;
mod traces;
mod units;
mod verdicts;
mod watermarks;
