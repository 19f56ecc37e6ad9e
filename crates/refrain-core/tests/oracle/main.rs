//! An independent oracle for schedules and windows, by brute force.
//!
//! The oracle shares nothing with the code under test except the offset of a zone at an instant. It records what the
//! wall clock shows at every minute, derives gaps and folds from that, and applies the rules minute by minute. Where
//! the two differ, one of them misreads the rules; the message has enough to tell which.
//!
//! The usual sweep takes one zone of each group with equal offsets in 2026 and 2027 and looks closely around each
//! change of its clock. `REFRAIN_FULL=1` takes every zone, over the whole two years.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test a panic is the failure report, also outside the test functions"
)]

mod calendar;
mod clock;
mod compare;
mod coverage;
mod day;
mod groups;
mod pattern;
mod report;
mod stories;
mod ticks;
mod windows;
