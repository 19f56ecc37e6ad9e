//! Killed anywhere, stopped anywhere, asked by fifty at once: the world looks as if it had run once.
//!
//! One file per subject, each story on both databases, with probes (`crates/refrain-harness/programs/probe`) as
//! processes that can be killed. `weakened.rs` takes away one guard at a time and shows that these stories notice.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the failure report")]

use refrain_harness as support;
use refrain_harness::both_databases;

mod contention;
mod everywhere;
mod failover;
mod in_flight;
mod lanes;
mod late;
mod moved;
mod panics;
mod poison;
mod server;
mod stopping;
mod takeover;
mod units;
mod weakened;
mod windows;
mod world;
mod zombies;
