//! The decisions of Refrain, as values.
//!
//! Nothing here touches the world: no files, no sockets, no database, no clock that was not handed in. A
//! decision (which windows a tick opens, whether a missed one still runs, what a key is, whether a state may
//! follow another) is a value that can be printed and tested by table; the `refrain` crate acts on it.

#[macro_use]
mod word;

pub mod catch_up;
pub mod clock;
pub mod clock_watch;
pub mod duration;
pub mod grid;
pub mod parse_error;
pub mod random;
pub mod retry;
pub mod revision;
pub mod schedule;
pub mod state;
pub mod tick;
pub mod timetable;
pub mod window;
pub mod window_name;
pub mod zone;

pub use catch_up::{CatchUp, SkipReason, Verdict};
pub use clock::{Clock, ManualClock, SystemClock};
pub use grid::Grid;
pub use parse_error::ParseError;
pub use random::{Random, SeededRandom, SystemRandom};
pub use retry::Retry;
pub use revision::{Revision, Revisions};
pub use schedule::{Dst, Fold, Gap, Schedule, Ticks};
pub use tick::{Opening, Pass, Shape};
pub use timetable::Timetable;
pub use window::{LogicalTime, Window, WindowError};
pub use word::Word;
pub use zone::{Jump, Zone};
