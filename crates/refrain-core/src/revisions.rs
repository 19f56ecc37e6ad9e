//! All revisions of one job's timetable, and what they say together.

use jiff::Timestamp;

use crate::revision::{EditError, Revision};
use crate::tick::Shape;
use crate::timetable::Timetable;
use crate::window::Window;
use crate::{ParseError, window_name};

/// The revisions of a timetable, in order. Those before the current one have all opened windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisions {
    past: Vec<Revision>,
    current: Revision,
}

/// Why stored revisions do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevisionsError {
    /// There are none.
    #[error("a job with a timetable has at least one revision")]
    None,
    /// A later one does not take over where the one before ended.
    #[error("revision {number} does not take over where revision {before} ended")]
    DoNotJoin {
        /// The earlier one.
        before: u32,
        /// The later one.
        number: u32,
    },
}

impl Revisions {
    /// The first timetable of a job, seen at `now`. With a start, windows begin there. Without one, the first
    /// tick opens the last whole window.
    pub fn first(timetable: Timetable, now: Timestamp) -> Result<Revisions, EditError> {
        let current = Revision::first(1, timetable, now).ok_or(EditError::NeverTicks)?;
        Ok(Revisions { past: Vec::new(), current })
    }

    /// The revisions as they were stored, in order.
    pub fn stored(mut revisions: Vec<Revision>) -> Result<Revisions, RevisionsError> {
        for (before, after) in revisions.iter().zip(revisions.iter().skip(1)) {
            let takes_over = before.until.is_some_and(|until| before.from < until && until <= after.from);
            if !takes_over || before.number >= after.number {
                return Err(RevisionsError::DoNotJoin { before: before.number, number: after.number });
            }
        }
        let current = revisions.pop().ok_or(RevisionsError::None)?;
        Ok(Revisions { past: revisions, current })
    }

    /// The one in force.
    pub fn current(&self) -> &Revision {
        &self.current
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Revision> {
        self.past.iter().chain([&self.current])
    }

    /// Takes a timetable that was edited at `now`; `covered` is the end of the last window that was opened, if
    /// any was. Gives whether anything changed.
    ///
    /// What is due under the timetable before is its own: it is opened by it first, or the edit is refused.
    pub fn edit(
        &mut self,
        timetable: Timetable,
        covered: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, EditError> {
        if timetable == self.current.timetable {
            return Ok(false);
        }
        if let Some(due) = self.current.openings(covered).next().filter(|opening| opening.tick <= now) {
            return Err(EditError::StillDue(due));
        }
        let number = self.current.number.saturating_add(1);
        let next = match covered {
            Some(covered) => Revision::following(number, timetable, covered, now),
            None => Revision::first(number, timetable, now).ok_or(EditError::NeverTicks)?,
        };
        let mut before = std::mem::replace(&mut self.current, next);
        if let Some(covered) = covered.filter(|covered| *covered > before.from) {
            before.until = Some(covered);
            self.past.push(before);
        }
        Ok(true)
    }

    /// The windows that must exist and end after `after` and not after `until`, each by the timetable in force
    /// for it.
    pub fn windows(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Window, Shape)> {
        self.iter().flat_map(move |revision| revision.windows(after, until))
    }

    /// Finds a window by its name, as it was called under the timetable in force for it. The time before the
    /// first revision is cut by that one's grid.
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
    /// let revisions = Revisions::first(hourly, "2026-06-09T12:00:00Z".parse()?)?;
    /// assert_eq!(revisions.find("2026-06-09T14:00")?.start().to_string(), "2026-06-09T12:00:00Z");
    /// let error = revisions.find("2026-06-09T14:30").unwrap_err();
    /// assert_eq!(error.advice(), Some("it lies in the window 2026-06-09T14:00"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(&self, name: &str) -> Result<Window, ParseError> {
        let mut found: Vec<Window> = Vec::new();
        let mut containing = None;
        let mut unreadable = None;
        for revision in self.iter() {
            let Timetable { zone, grid, .. } = &revision.timetable;
            let at = match window_name::parse(name, zone) {
                Ok(start) => start.timestamp(),
                Err(error) => {
                    unreadable = Some(error);
                    continue;
                }
            };
            let Some(window) = self.around(revision, at) else { continue };
            if window.start().timestamp() != at {
                containing = Some(window_name::write(window.start(), *grid, zone));
            } else if !found.contains(&window) {
                found.push(window);
            }
        }
        match (found.as_slice(), unreadable) {
            ([window], _) => Ok(*window),
            ([], Some(error)) if containing.is_none() => Err(error),
            ([], _) => Err(window_name::not_a_start(name, containing)),
            (several, _) => Err(window_name::means_several(name, several)),
        }
    }

    fn around(&self, revision: &Revision, at: Timestamp) -> Option<Window> {
        let is_first = self.iter().next().is_some_and(|first| first.number == revision.number);
        let before = is_first.then(|| revision.windows_before(at)).into_iter().flatten();
        let mut windows = before.take(1).chain(revision.windows(at, Timestamp::MAX).take(1));
        windows.find_map(|(window, _)| window.contains(at).then_some(window))
    }
}
