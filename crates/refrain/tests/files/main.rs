//! Files that jobs publish: what people read is one whole set of them, whatever became of those who wrote it.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use refrain_harness as support;
use refrain_harness::both_databases;

use refrain_harness::shop;

mod commands;
mod export;
mod killed;
mod refused;
mod rows;
mod stale;
