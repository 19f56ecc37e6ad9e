//! Revisions: a timetable may be edited without changing the windows of the past.
//!
//! Each edit is a revision. It takes over where the windows of the previous one ended: if that is not a boundary of its own
//! grid, the time up to the next one is a window of odd length, a [`Remainder`](WindowShape::Remainder). So the windows of
//! two revisions never overlap, no time falls between them, and a window of last year is judged by the timetable that was
//! in force then. Ticks before the edit do not belong to the new timetable: windows that it finds uncovered open at its
//! first tick after the edit, on time.
//!
//! A timetable that never opened a window leaves no trace: mistyping a start and correcting it costs nothing. A start that
//! is moved later leaves out the time before it. A start that is moved earlier opens nothing by itself: those windows run
//! only when the operator requests them.
//!
//! A store keeps all the fields of every [`Revision`], and once per job how far windows are *covered*: the end of the last
//! window that was opened. Opened windows are rows and are read as such, also because the rules of a zone may have changed
//! since; the windows computed here are those that must exist.

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::catch_up::ON_TIME;
use crate::grid::Grid;
use crate::tick::{DueWindow, WindowShape};
use crate::timetable::Timetable;
use crate::window::{LogicalTime, Window};
use crate::zone::second_before;

/// A timetable and the time during which it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Increases with each edit.
    pub number: u32,
    /// The timetable.
    pub timetable: Timetable,
    /// Its windows begin here or later…
    pub from: Timestamp,
    /// …and end here or earlier, once another revision has taken over.
    pub until: Option<Timestamp>,
    /// Whether it must cover `from` itself: the windows of another revision ended there.
    pub joins: bool,
    /// Ticks up to this instant belong to the previous revision.
    pub ticks_after: Timestamp,
}

/// Why a timetable could not be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Windows are due under the timetable in force.
    #[error(
        "the window {} was due at {} under the timetable that is to be replaced: open what is due first",
        .0.window, .0.tick
    )]
    StillDue(DueWindow),
    /// The new schedule never ticks.
    #[error("the schedule does not tick before the year 5000")]
    NeverTicks,
}

impl Revision {
    /// With a start, windows begin there. Without one, the first tick opens the last whole window.
    pub(crate) fn first(number: u32, timetable: Timetable, now: Timestamp) -> Option<Revision> {
        let (from, ticks_after) = match timetable.start {
            Some(start) => (start.timestamp(), start.timestamp()),
            None => first_window(&timetable, now)?,
        };
        Some(Revision { number, timetable, from, until: None, joins: false, ticks_after })
    }

    /// A revision that takes over from this one at `covered`. A start that is later on the calendar leaves out the time before
    /// it; one that only moved along with the zone does not.
    pub(crate) fn followed_by(
        &self,
        number: u32,
        timetable: Timetable,
        covered: Timestamp,
        now: Timestamp,
    ) -> Revision {
        let written =
            |timetable: &Timetable| timetable.start.map(|start| timetable.zone.wall(start.timestamp()));
        let was_moved = written(&timetable) > written(&self.timetable);
        let start = timetable.start.map(LogicalTime::timestamp);
        let later_start = start.filter(|start| was_moved && *start > covered);
        Revision {
            number,
            from: later_start.unwrap_or(covered),
            joins: later_start.is_none(),
            timetable,
            until: None,
            ticks_after: now,
        }
    }

    /// A revision that begins after a time without a timetable; windows were opened up to `until`. It begins at a start after
    /// that, or else as a first revision does.
    pub(crate) fn anew(
        number: u32,
        timetable: Timetable,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<Revision> {
        let start = timetable.start.map(LogicalTime::timestamp).filter(|start| *start > until);
        let (from, ticks_after) = match start {
            Some(start) => (start, start),
            None => first_window(&timetable, now)?,
        };
        Some(Revision { number, timetable, from: from.max(until), until: None, joins: false, ticks_after })
    }

    /// Another timetable from the same instant on, for a revision that has opened nothing.
    pub(crate) fn replaced_by(&self, number: u32, timetable: Timetable, now: Timestamp) -> Revision {
        let start = timetable.start.map(LogicalTime::timestamp).filter(|start| *start > self.from);
        Revision { number, timetable, from: start.unwrap_or(self.from), ticks_after: now, ..self.clone() }
    }

    /// The windows that must exist by this revision and end after `after` and not after `until`, in order.
    pub fn windows(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Window, WindowShape)> {
        let until = self.until.map_or(until, |end| end.min(until));
        let beginning = self.beginning_at_or_before(after);
        let windows = beginning.into_iter().flat_map(|beginning| self.windows_from(beginning));
        windows
            .skip_while(move |(window, _)| window.end().timestamp() <= after)
            .take_while(move |(window, _)| window.end().timestamp() <= until)
    }

    /// The windows that its grid gives to the time before it and that end after `after`, in order.
    pub(crate) fn windows_before(&self, after: Timestamp) -> impl Iterator<Item = (Window, WindowShape)> {
        let first =
            self.windows_from(self.from).next().map_or(self.from, |(window, _)| window.start().timestamp());
        let cells = self.timetable.grid.windows_after(&self.timetable.zone, after);
        let ticks = (self.timetable.grid == Grid::Tick).then(|| self.timetable.ticks());
        let mut start = ticks.and_then(|ticks| ticks.at_or_before(after));
        let from_tick_to_tick = std::iter::from_fn(move || {
            let (from, end) = (start?, ticks?.after(start?)?);
            start = Some(end);
            Window::stored(from, end).ok()
        });
        cells
            .chain(from_tick_to_tick)
            .take_while(move |cell| cell.start().timestamp() < first)
            .filter_map(move |cell| cut(cell, cell.start().timestamp(), first))
    }

    /// Where one of its windows begins: at `from`, or at the last boundary at or before `after`. `None` if no window ends
    /// after `after`.
    fn beginning_at_or_before(&self, after: Timestamp) -> Option<Timestamp> {
        let (first, _) = self.windows_from(self.from).next()?;
        if after < first.end().timestamp() {
            return Some(self.from);
        }
        self.timetable.line_at_or_before(after)
    }

    /// The windows that follow `covered` without a gap, the first one shortened if `covered` is not a boundary.
    pub(crate) fn windows_from(&self, covered: Timestamp) -> impl Iterator<Item = (Window, WindowShape)> {
        let whole_only = !self.joins && covered == self.from;
        let cells = self.timetable.grid.windows_after(&self.timetable.zone, covered).filter_map(
            move |cell| match cell.start().timestamp().cmp(&covered) {
                Ordering::Less if whole_only => None,
                Ordering::Less => cut(cell, covered, cell.end().timestamp()),
                Ordering::Equal | Ordering::Greater => Some((cell, WindowShape::Whole)),
            },
        );
        let is_tick = self.timetable.grid == Grid::Tick;
        is_tick.then(|| self.tick_windows_from(covered)).into_iter().flatten().chain(cells)
    }

    fn tick_windows_from(&self, covered: Timestamp) -> impl Iterator<Item = (Window, WindowShape)> {
        let mut start = covered;
        std::iter::from_fn(move || {
            let ticks = self.timetable.ticks();
            let end = ticks.after(start.max(self.ticks_after))?;
            let window = Window::stored(start, end).ok()?;
            let is_whole = ticks.at_or_before(second_before(end)) == Some(start);
            start = end;
            Some((window, if is_whole { WindowShape::Whole } else { WindowShape::Remainder }))
        })
    }
}

/// The part of a grid cell between two instants.
fn cut(cell: Window, from: Timestamp, until: Timestamp) -> Option<(Window, WindowShape)> {
    let (start, end) = (cell.start().timestamp().max(from), cell.end().timestamp().min(until));
    let left = Window::stored(start, end).ok()?;
    Some((left, if left == cell { WindowShape::Whole } else { WindowShape::Remainder }))
}

/// Without a start the first tick opens the last whole window; a tick that has just passed is the first if it is still on
/// time. Returns where that window begins, and an instant just before the tick.
fn first_window(timetable: &Timetable, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let ticks = timetable.ticks();
    let is_on_time = |tick: &Timestamp| now.duration_since(*tick).unsigned_abs() <= ON_TIME;
    let tick = ticks.at_or_before(now).filter(is_on_time).or_else(|| ticks.after(now))?;
    let end = timetable.line_at_or_before(tick)?;
    Some((timetable.line_at_or_before(second_before(end))?, second_before(tick)))
}
