//! Revisions: a timetable may be edited, and the windows of the past stay what they were.
//!
//! Each edit is a revision. It takes over where the windows of the one before ended: if that is not a line
//! of its own grid, what lies between is one short window, a [`Remainder`](Shape::Remainder). So the
//! windows of two revisions never overlap, no time falls between them, and a window of last year is judged
//! by the timetable that was in force then. Ticks before the edit were not the new timetable's: what it finds
//! uncovered opens at its first tick after the edit, on time.
//!
//! A start that is moved later leaves out what lies before it. One that is moved earlier opens nothing by
//! itself: those windows are a backfill, which says what it will do before it does it.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

use crate::catch_up::ON_TIME;
use crate::grid::Grid;
use crate::tick::Shape;
use crate::timetable::Timetable;
use crate::window::Window;
use crate::{ParseError, window_name};

/// A timetable and the time it is in force for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Counted from 1.
    pub number: u32,
    /// What it says.
    pub timetable: Timetable,
    /// Its windows begin here or later…
    pub from: Timestamp,
    /// …and end here or earlier, once another revision has taken over.
    pub until: Option<Timestamp>,
    /// Whether it must cover `from` itself: another revision's windows ended there.
    pub joins: bool,
    /// Ticks up to this instant are not its own.
    pub ticks_after: Timestamp,
}

impl Revision {
    fn first(timetable: Timetable, now: Timestamp) -> Option<Revision> {
        let (from, ticks_after) = match timetable.start {
            Some(start) => (start, start),
            None => first_window(&timetable, now)?,
        };
        Some(Revision { number: 1, timetable, from, until: None, joins: false, ticks_after })
    }

    fn followed_by(&self, timetable: Timetable, covered: Timestamp, now: Timestamp) -> Revision {
        let later_start = timetable.start.filter(|start| *start > covered);
        Revision {
            number: self.number.saturating_add(1),
            from: later_start.unwrap_or(covered),
            joins: later_start.is_none(),
            timetable,
            until: None,
            ticks_after: now,
        }
    }

    /// The windows that this revision gives to the time after `after` and up to `until`, in order. The first
    /// revision also speaks for the time before it.
    pub fn windows(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Window, Shape)> {
        let until = self.until.map_or(until, |end| end.min(until));
        let line = self.timetable.line_at_or_before(after);
        let position = match self.number {
            1 => line,
            _ => Some(line.map_or(self.from, |line| line.max(self.from))),
        };
        position
            .into_iter()
            .flat_map(|position| self.windows_from(position))
            .skip_while(move |(window, _)| window.end().timestamp() <= after)
            .take_while(move |(window, _)| window.end().timestamp() <= until)
    }

    /// The windows that follow `covered` without gap, the first cut short if `covered` is not a line.
    pub(crate) fn windows_from(&self, covered: Timestamp) -> impl Iterator<Item = (Window, Shape)> {
        let whole_only = !self.joins && covered == self.from;
        let cells = self.timetable.grid.windows_after(&self.timetable.zone, covered).filter_map(
            move |cell| match cell.start().timestamp().cmp(&covered) {
                Ordering::Less if whole_only => None,
                Ordering::Less => {
                    Some((Window::new(covered, cell.end().timestamp()).ok()?, Shape::Remainder))
                }
                Ordering::Equal | Ordering::Greater => Some((cell, Shape::Whole)),
            },
        );
        let is_tick = self.timetable.grid == Grid::Tick;
        is_tick.then(|| self.tick_windows_from(covered)).into_iter().flatten().chain(cells)
    }

    fn tick_windows_from(&self, covered: Timestamp) -> impl Iterator<Item = (Window, Shape)> {
        let mut start = covered;
        std::iter::from_fn(move || {
            let end = match self.timetable.ticks() {
                ticks if start < self.from => ticks.after(start)?.min(self.from),
                ticks => ticks.after(start.max(self.ticks_after))?,
            };
            let window = Window::new(start, end).ok()?;
            start = end;
            Some((window, Shape::Whole))
        })
    }
}

/// Without a start the first tick opens the last whole window; a tick that has just been is the first if it
/// is still on time. Gives where that window begins, and an instant just before the tick.
fn first_window(timetable: &Timetable, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let ticks = timetable.ticks();
    let is_on_time = |tick: &Timestamp| now.duration_since(*tick).unsigned_abs() <= ON_TIME;
    let tick = ticks.at_or_before(now).filter(is_on_time).or_else(|| ticks.after(now))?;
    let end = timetable.line_at_or_before(tick)?;
    Some((timetable.line_at_or_before(second_before(end)?)?, second_before(tick)?))
}

fn second_before(at: Timestamp) -> Option<Timestamp> {
    at.checked_sub(SignedDuration::from_secs(1)).ok()
}

/// All revisions of one job's timetable, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisions {
    past: Vec<Revision>,
    current: Revision,
}

impl Revisions {
    /// The first timetable of a job, seen at `now`. With a start, windows begin there. Without one, the first
    /// tick opens the last whole window.
    ///
    /// None if the schedule does not tick within the years that can be written.
    pub fn first(timetable: Timetable, now: Timestamp) -> Option<Revisions> {
        Some(Revisions { past: Vec::new(), current: Revision::first(timetable, now)? })
    }

    /// The revisions as they were stored, in order. None if there are none.
    pub fn stored(mut revisions: Vec<Revision>) -> Option<Revisions> {
        let current = revisions.pop()?;
        Some(Revisions { past: revisions, current })
    }

    /// The one in force.
    pub fn current(&self) -> &Revision {
        &self.current
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Revision> {
        self.past.iter().chain([&self.current])
    }

    /// Takes a timetable that was edited at `now`; `covered` is the end of the last window that was opened. The
    /// timetable before must have had its last [`pass`](Revision::pass) at `now`: what was due under it is
    /// its own. Gives whether anything changed.
    pub fn edit(&mut self, timetable: Timetable, covered: Timestamp, now: Timestamp) -> bool {
        if timetable == self.current.timetable {
            return false;
        }
        let covered = covered.max(self.current.from);
        let next = self.current.followed_by(timetable, covered, now);
        let mut before = std::mem::replace(&mut self.current, next);
        before.until = Some(covered);
        self.past.push(before);
        true
    }

    /// The windows that end after `after` and not after `until`, each by the timetable in force for it.
    pub fn windows(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Window, Shape)> {
        self.iter().flat_map(move |revision| revision.windows(after, until))
    }

    /// Finds a window by its name, as it was called under the timetable in force for it.
    ///
    /// ```
    /// use refrain_core::{Dst, Grid, Revisions, Schedule, Timetable, Zone};
    ///
    /// let hourly = Timetable {
    ///     schedule: Schedule::parse("5 * * * *")?,
    ///     zone: Zone::parse("Europe/Berlin")?,
    ///     grid: Grid::parse("hour")?,
    ///     dst: Dst::default(),
    ///     start: None,
    /// };
    /// let revisions = Revisions::first(hourly, "2026-06-09T12:00:00Z".parse()?).expect("it ticks");
    /// assert_eq!(revisions.find("2026-06-09T14:00")?.start().to_string(), "2026-06-09T12:00:00Z");
    /// let error = revisions.find("2026-06-09T14:30").unwrap_err();
    /// assert_eq!(error.advice(), Some("it lies in the window 2026-06-09T14:00"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(&self, name: &str) -> Result<Window, ParseError> {
        let mut fault = None;
        for revision in [&self.current].into_iter().chain(self.past.iter().rev()) {
            let Timetable { zone, grid, .. } = &revision.timetable;
            let at = match window_name::parse(name, zone) {
                Ok(start) => start.timestamp(),
                Err(error) => {
                    fault.get_or_insert(error);
                    continue;
                }
            };
            let around = revision.windows(at, Timestamp::MAX).next().map(|(window, _)| window);
            match around.filter(|window| window.contains(at)) {
                Some(window) if window.start().timestamp() == at => return Ok(window),
                Some(window) => {
                    let containing = window_name::write(window.start(), *grid, zone);
                    fault = Some(window_name::not_a_start(name, Some(containing)));
                }
                None => fault = fault.or_else(|| Some(window_name::not_a_start(name, None))),
            }
        }
        Err(fault.unwrap_or_else(|| window_name::not_a_start(name, None)))
    }
}
