//! All revisions of one job's timetable.

use jiff::{SignedDuration, Timestamp};

use crate::revision::{EditError, Revision};
use crate::tick::WindowShape;
use crate::timetable::Timetable;
use crate::window::{LogicalTime, Window};
use crate::{ParseError, window_name};

/// The revisions of a timetable, in order. All but the current one have opened windows. If the job has no timetable any
/// more, the current one has ended: it is *retired*, and opens nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisions {
    past: Vec<Revision>,
    current: Revision,
}

/// Why stored revisions do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionsError {
    /// The list is empty.
    #[error("a job with a timetable has at least one revision")]
    None,
    /// The last one ended before it began.
    #[error("revision {number} ends before it begins")]
    EndsBeforeItBegins {
        /// The last one.
        number: u32,
    },
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
            let takes_over = before.until.is_some_and(|until| {
                before.from < until && if after.joins { until == after.from } else { until <= after.from }
            });
            if !takes_over || before.number >= after.number {
                return Err(RevisionsError::DoNotJoin { before: before.number, number: after.number });
            }
        }
        let current = revisions.pop().ok_or(RevisionsError::None)?;
        if current.until.is_some_and(|until| until <= current.from) {
            return Err(RevisionsError::EndsBeforeItBegins { number: current.number });
        }
        Ok(Revisions { past: revisions, current })
    }

    /// The revision in force, or the last one that was.
    pub fn current(&self) -> &Revision {
        &self.current
    }

    /// Whether no revision is in force: the job has no timetable any more.
    pub fn is_retired(&self) -> bool {
        self.current.until.is_some()
    }

    /// Takes the timetable out of force. Windows that are due by then must have been opened; `covered` is as in
    /// [`edit`](Self::edit). Returns the revisions to store instead: `None` if no window was ever opened.
    pub fn retire(
        mut self,
        covered: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Option<Revisions>, EditError> {
        if self.is_retired() {
            return Ok(Some(self));
        }
        let covered = covered.max(self.past.last().and_then(|revision| revision.until));
        if let Some(due) =
            self.current.due_windows(covered).next().filter(|due_window| due_window.tick <= now)
        {
            return Err(EditError::StillDue(due));
        }
        if let Some(covered) = covered.filter(|covered| *covered > self.current.from) {
            self.current.until = Some(covered);
            return Ok(Some(self));
        }
        // It opened no window and leaves no trace.
        let last = self.past.pop();
        Ok(last.map(|current| Revisions { current, ..self }))
    }

    /// All revisions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Revision> {
        self.past.iter().chain([&self.current])
    }

    /// Applies a timetable that was edited at `now`; `covered` is the end of the last window that was opened for the job, if
    /// any. Returns whether anything changed; then [`iter`](Self::iter) replaces the stored revisions, because a revision
    /// that opened nothing is dropped.
    ///
    /// Windows that are due under the previous timetable belong to it: they must be opened first, or the edit is refused.
    ///
    /// A job that had no timetable for a time begins anew: at a `start` after all opened windows, else as a new job does, and
    /// the time between is left out. If nothing was due in that time, the timetable counts as never removed: a file that is
    /// being rewritten may be missing for a moment.
    pub fn edit(
        &mut self,
        mut timetable: Timetable,
        covered: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, EditError> {
        if let Some(until) = self.current.until {
            let mut as_if = self.current.clone();
            as_if.until = None;
            let missed =
                as_if.due_windows(covered.max(Some(until))).next().is_some_and(|next| next.tick <= now);
            if missed {
                let number = self.current.number.saturating_add(1);
                let next = Revision::anew(number, timetable, until, now).ok_or(EditError::NeverTicks)?;
                self.past.push(std::mem::replace(&mut self.current, next));
                return Ok(true);
            }
            self.current = as_if;
            self.edit(timetable, covered, now)?;
            return Ok(true);
        }
        let in_force = &self.current.timetable;
        // During a rolling upgrade, the release with older zone rules keeps the newer revision in force.
        if timetable.zone.is_older_than(&in_force.zone) {
            timetable.zone = in_force.zone.clone();
        }
        if timetable == *in_force {
            return Ok(false);
        }
        let covered = covered.max(self.past.last().and_then(|revision| revision.until));
        if let Some(due) =
            self.current.due_windows(covered).next().filter(|due_window| due_window.tick <= now)
        {
            return Err(EditError::StillDue(due));
        }
        let number = self.current.number.saturating_add(1);
        if self.follows_a_gap(covered) {
            self.current = self.current.replaced_by(number, timetable, now);
            return Ok(true);
        }
        // The revision that opened the last window; a mistake in between does not count.
        let opened = self.past.last().filter(|_| covered <= Some(self.current.from)).unwrap_or(&self.current);
        let next = match covered {
            Some(covered) => opened.followed_by(number, timetable, covered, now),
            None => Revision::first(number, timetable, now).ok_or(EditError::NeverTicks)?,
        };
        let mut before = std::mem::replace(&mut self.current, next);
        if let Some(covered) = covered.filter(|covered| *covered > before.from) {
            before.until = Some(covered);
            self.past.push(before);
        }
        Ok(true)
    }

    /// Whether the current revision began anew after a time without a timetable, and has opened nothing yet. (One with a
    /// later start begins at that start.)
    fn follows_a_gap(&self, covered: Option<Timestamp>) -> bool {
        let Revision { from, joins, timetable, .. } = &self.current;
        let begins_at_start = timetable.start.map(LogicalTime::timestamp) == Some(*from);
        !self.past.is_empty() && !joins && !begins_at_start && covered <= Some(*from)
    }

    /// The windows that must exist and end after `after` and not after `until`, each by the timetable in force for it and the
    /// present rules of its zone. Opened windows are rows; read them there.
    pub fn windows(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Window, WindowShape)> {
        self.iter().flat_map(move |revision| revision.windows(after, until))
    }

    /// The windows that are not expected and that end after `after` and not after `until`: before the first revision, and
    /// where a later start left time out. They exist only when the operator requests them.
    pub fn left_out(
        &self,
        after: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = (Window, WindowShape)> {
        let ends = std::iter::once(None).chain(self.iter().map(|revision| revision.until));
        let gaps = self.iter().zip(ends).filter(|(revision, _)| !revision.joins);
        gaps.flat_map(move |(revision, before)| {
            let after = before.map_or(after, |before| before.max(after));
            let is_free =
                move |window: &Window| before.is_none_or(|before| window.start().timestamp() >= before);
            revision.windows_before(after).filter(move |(window, _)| is_free(window))
        })
        .take_while(move |(window, _)| window.end().timestamp() <= until)
    }

    /// Finds a window by its name under the timetable in force for it, even if the window is not expected. A store searches
    /// its rows first.
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
        let mut fault = None;
        for revision in self.iter() {
            let Timetable { zone, grid, .. } = &revision.timetable;
            match window_name::meanings(name, zone) {
                Err(error) => fault = Some(error),
                Ok(starts) => {
                    for at in starts.into_iter().map(LogicalTime::timestamp) {
                        match self.around(revision, at) {
                            Some(window) if window.start().timestamp() != at => {
                                containing = Some(window_name::write(window.start(), *grid, zone));
                            }
                            Some(window) => found.push(window),
                            None => {}
                        }
                    }
                }
            }
        }
        match (found.as_slice(), fault) {
            ([window], _) => Ok(*window),
            ([], Some(error)) if containing.is_none() => Err(error),
            ([], _) => Err(window_name::not_a_start(name, containing)),
            (several, _) => Err(window_name::means_several(name, several)),
        }
    }

    /// The latest window that is over, whether it must exist or not.
    pub fn latest(&self, now: Timestamp) -> Option<Window> {
        let containing = self.around(&self.current, now);
        let end = containing.map_or(now, |window| window.start().timestamp());
        let inside = end.checked_sub(SignedDuration::from_micros(1)).ok()?;
        self.iter().collect::<Vec<_>>().into_iter().rev().find_map(|revision| self.around(revision, inside))
    }

    /// The window of a revision, or before it, that contains an instant.
    pub(crate) fn around(&self, revision: &Revision, at: Timestamp) -> Option<Window> {
        let own = revision.windows(at, Timestamp::MAX).next();
        let left_out = || {
            let before = self.iter().take_while(|one| one.number < revision.number).last();
            let free_from = before.and_then(|before| before.until).unwrap_or(Timestamp::MIN);
            let window = (!revision.joins).then(|| revision.windows_before(at).next()).flatten();
            window.filter(|(window, _)| window.start().timestamp() >= free_from)
        };
        let contains = |(window, _): &(Window, WindowShape)| window.contains(at);
        own.filter(contains).or_else(|| left_out().filter(contains)).map(|(window, _)| window)
    }
}
