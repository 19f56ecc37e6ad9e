//! Time: zones, windows, schedules, and the rules that decide which windows open.
//!
//! Everything here is computed from values; only `clock.rs` reads the real clock. The modules are re-exported at the crate
//! root.

pub mod catch_up;
pub mod clock;
pub mod clock_watch;
pub mod duration;
pub mod expectation;
pub mod grid;
pub mod revision;
pub mod revisions;
pub mod schedule;
pub mod tick;
pub mod timetable;
pub mod window;
pub mod window_name;
pub mod zone;
