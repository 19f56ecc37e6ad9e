//! Results that are published: what a window owns is replaced, whole, by whoever comes last, and nothing happens twice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

use refrain_harness as support;
use refrain_harness::both_databases;
use refrain_harness::shop;

mod appended;
mod between;
mod chance;
mod design;
mod in_flight;
mod killed;
mod landing;
mod modes;
mod names;
mod polled;
mod refusals;
mod role;
mod swallowed;
mod together;
mod warehouse;
mod weakened;
