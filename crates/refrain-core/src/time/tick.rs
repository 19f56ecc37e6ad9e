//! The tick rule: which windows a tick opens, and what becomes of each.
//!
//! **A tick opens every whole window of the job's grid that ended after the previous tick and not after this
//! one.** Said from the window's side: a window opens at the first tick at or after its end. So a weekday
//! schedule with day windows opens Friday, Saturday and Sunday on Monday, and nothing has to be remembered but
//! *how far windows have been opened*: the end of the last one, called `covered`. It only grows; a clock that is
//! put back, a second scheduler, or new rules for a zone find the windows before it opened and leave them alone.
//!
//! A [`Pass`] is the decision of a scheduler that looks at one job: the rows to insert (skipped windows too,
//! each with its reason), how far time is covered then, and when to look again. It depends only on what it
//! is given, and cutting the work into smaller passes gives the same rows.

use jiff::Timestamp;

use crate::catch_up::{CatchUp, Verdict};
use crate::revision::Revision;
use crate::window::Window;
use crate::zone::second_before;

/// A window and the tick that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The window.
    pub window: Window,
    /// Whether it is all of a cell of the grid.
    pub shape: Shape,
    /// The instant at which it is due.
    pub tick: Timestamp,
}

/// Whether a window is all of a cell of its grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// It is.
    Whole,
    /// It begins where the windows of an older revision ended, or at a start between two ticks.
    Remainder,
}

/// What one look at a job's timetable found to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The windows that are due and not opened yet, in order, with what becomes of each.
    pub rows: Vec<(Opening, Verdict)>,
    /// Up to where windows have been opened once these rows exist; none if there never was one.
    pub covered: Option<Timestamp>,
    /// When the next window is due; not after `now` if the limit was reached. None if there is none ever.
    pub next: Option<Timestamp>,
}

impl Revision {
    /// The windows that follow `covered`, each with the tick that opens it, until another revision takes over. `covered` is the end of
    /// the last window that was opened; none if none was.
    pub fn openings(&self, covered: Option<Timestamp>) -> impl Iterator<Item = Opening> {
        let mut tick = None;
        let position = covered.map_or(self.from, |covered| covered.max(self.from));
        self.windows_from(position).map_while(move |(window, shape)| {
            let end = window.end().timestamp();
            if tick.is_none_or(|tick| tick < end) {
                tick = self.tick_of(window);
            }
            let is_its_own = self.until.is_none_or(|until| end <= until);
            is_its_own.then_some(Opening { window, shape, tick: tick? })
        })
    }

    /// The tick that opens a window: the first at or after its end that is this revision's own.
    pub fn tick_of(&self, window: Window) -> Option<Timestamp> {
        self.timetable.ticks().after(second_before(window.end().timestamp()).max(self.ticks_after))
    }

    /// Decides what a scheduler that looks at `now` must write: at most `limit` rows. It is asked of the current
    /// revision.
    pub fn pass(&self, covered: Option<Timestamp>, catch_up: CatchUp, now: Timestamp, limit: usize) -> Pass {
        let mut pass = Pass { rows: Vec::new(), covered, next: None };
        let latest = self.latest(now);
        for opening in self.openings(covered) {
            if opening.tick > now || pass.rows.len() >= limit {
                pass.next = Some(opening.tick);
                break;
            }
            let verdict = catch_up.judge(&opening, self.timetable.ticks().after(opening.tick), latest, now);
            pass.covered = Some(opening.window.end().timestamp());
            pass.rows.push((opening, verdict));
        }
        pass
    }

    /// The latest window that is due at `now`.
    fn latest(&self, now: Timestamp) -> Option<Window> {
        let tick = self.timetable.ticks().at_or_before(now)?;
        let end = self.timetable.line_at_or_before(tick)?;
        let start = self.timetable.line_at_or_before(second_before(end))?;
        Window::stored(start, end).ok()
    }
}
