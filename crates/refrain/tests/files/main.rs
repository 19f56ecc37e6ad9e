//! Files that jobs publish: readers see one whole version, whatever happened to the process that
//! wrote it.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

mod commands;
mod export;
mod killed;
mod refused;
mod rows;
mod stale;
