//! Killed anywhere, stopped anywhere, requested fifty times at once: the result is as if the run
//! had been executed once.
//!
//! One file per subject, each test on both databases, with probes
//! (`crates/refrain-harness/programs/probe`) as processes that can be killed. `weakened.rs` removes
//! one guard at a time and shows that these tests notice.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the failure report")]

mod contention;
mod effects;
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
