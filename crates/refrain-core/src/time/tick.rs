//! The tick rule: which windows a tick opens, and what happens to each.
//!
//! **A tick opens every whole window of the job's grid that ended after the previous tick and not after this one.** In
//! other words: a window opens at the first tick at or after its end. So a weekday schedule with day windows opens Friday,
//! Saturday and Sunday on Monday, and the only state is *how far windows have been opened*: the end of the last one,
//! called `covered`. It only grows; after a clock that is set back, a second scheduler, or new rules for a zone, the
//! windows before it are found opened and left alone.
//!
//! A [`TickPlan`] is what a scheduler decides for one job: the rows to insert (including skipped windows, each with its
//! reason), how far time is covered then, and when to look again. It depends only on its inputs, and splitting the work
//! into smaller plans gives the same rows.

use jiff::Timestamp;

use crate::catch_up::{CatchUp, CatchUpVerdict};
use crate::revision::Revision;
use crate::window::Window;
use crate::zone::second_before;

/// A window and the tick that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueWindow {
    /// The window.
    pub window: Window,
    /// Whether it fills a cell of the grid.
    pub shape: WindowShape,
    /// The instant at which the window is due.
    pub tick: Timestamp,
}

/// Whether a window fills a cell of its grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowShape {
    /// It fills a cell.
    Whole,
    /// It begins where the windows of an older revision ended, or at a start between two ticks.
    Remainder,
}

/// What a scheduler does for one job at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickPlan {
    /// The windows that are due and not opened yet, in order, each with its verdict.
    pub rows: Vec<(DueWindow, CatchUpVerdict)>,
    /// How far windows are opened once these rows exist; `None` if no window was ever opened.
    pub covered: Option<Timestamp>,
    /// When the next window is due; not after `now` if the limit was reached. `None` if no window is ever due again.
    pub next: Option<Timestamp>,
}

impl Revision {
    /// The windows that follow `covered`, each with the tick that opens it, until another revision takes over. `covered` is
    /// the end of the last opened window, if any.
    pub fn due_windows(&self, covered: Option<Timestamp>) -> impl Iterator<Item = DueWindow> {
        let mut tick = None;
        let position = covered.map_or(self.from, |covered| covered.max(self.from));
        self.windows_from(position).map_while(move |(window, shape)| {
            let end = window.end().timestamp();
            if tick.is_none_or(|tick| tick < end) {
                tick = self.tick_of(window);
            }
            let is_its_own = self.until.is_none_or(|until| end <= until);
            is_its_own.then_some(DueWindow { window, shape, tick: tick? })
        })
    }

    /// The tick that opens a window: the first at or after its end that is this revision's own.
    pub fn tick_of(&self, window: Window) -> Option<Timestamp> {
        self.timetable.ticks().after(second_before(window.end().timestamp()).max(self.ticks_after))
    }

    /// Decides what a scheduler must write at `now`: at most `limit` rows. Only the current revision is asked.
    pub fn pass(
        &self,
        covered: Option<Timestamp>,
        catch_up: CatchUp,
        now: Timestamp,
        limit: usize,
    ) -> TickPlan {
        let mut pass = TickPlan { rows: Vec::new(), covered, next: None };
        let latest = self.latest(now);
        for due in self.due_windows(covered) {
            if due.tick > now || pass.rows.len() >= limit {
                pass.next = Some(due.tick);
                break;
            }
            let verdict = catch_up.judge(&due, self.timetable.ticks().after(due.tick), latest, now);
            pass.covered = Some(due.window.end().timestamp());
            pass.rows.push((due, verdict));
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
