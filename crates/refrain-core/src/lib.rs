//! The decisions of Refrain, as values.
//!
//! Nothing here touches the world: no files, no sockets, no database, no clock that was not handed in. A
//! decision (which windows a tick opens, whether a missed one still runs, what a key is, whether a state may
//! follow another) is a value that can be printed and tested by table; the `refrain` crate acts on it.

pub mod catch_up;
pub mod duration;
pub mod grid;
pub mod parse_error;
pub mod revision;
pub mod schedule;
pub mod tick;
pub mod timetable;
pub mod window;
pub mod window_name;
pub mod zone;

pub use catch_up::{CatchUp, SkipReason, Verdict};
pub use grid::Grid;
pub use parse_error::ParseError;
pub use revision::{Revision, Revisions};
pub use schedule::{Dst, Fold, Gap, Schedule, Ticks};
pub use tick::{Opening, Pass, Shape};
pub use timetable::Timetable;
pub use window::{LogicalTime, Window, WindowError};
pub use zone::{Jump, Zone};
