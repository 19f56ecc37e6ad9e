//! Units printed by scripts or returned by queries: read, applied once and remembered, whatever happens to their
//! worker.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

mod appended;
mod breaker;
mod bulk;
mod calls;
mod cursors;
mod doubts;
mod durable;
mod each;
mod failures;
mod fenced;
mod flapping;
mod held;
mod killed;
mod late;
mod lines;
mod mended;
mod nightly;
mod odd;
mod pressure;
mod queries;
mod receiver;
mod reconcile;
mod redo;
mod restored;
mod settled;
mod sync;
mod together;
mod watermarks;
mod wide;
