//! One window under all revisions of a timetable: which revision it belongs to, when it opens, what it is called.
//!
//! All of it follows from the window and the revisions alone, so a scheduler, a watcher for late windows and an operator who
//! asks why get the same answer at any time.

use jiff::Timestamp;

use crate::revision::Revision;
use crate::revisions::Revisions;
use crate::window::{LogicalTime, Window};
use crate::window_name;

/// Whether a window must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// It must exist, by this revision.
    Opens {
        /// The number of the revision.
        revision: u32,
        /// The tick that opens it; `None` if no tick ever will.
        tick: Option<Timestamp>,
    },
    /// It is not expected: the windows of the revision that could have it begin later.
    LeftOut {
        /// The number of the revision.
        revision: u32,
        /// Where its windows begin.
        from: Timestamp,
    },
}

impl Expectation {
    /// The tick that opens the window, if it must exist.
    pub fn tick(self) -> Option<Timestamp> {
        match self {
            Expectation::Opens { tick, .. } => tick,
            Expectation::LeftOut { .. } => None,
        }
    }
}

impl Revisions {
    /// Whether a window must exist, and when it opens.
    ///
    /// ```
    /// use refrain_core::{Dst, Expectation, Grid, Revisions, Schedule, Timetable, Zone, window_name};
    ///
    /// let zone = Zone::parse("Europe/Berlin")?;
    /// let nightly = Timetable {
    ///     schedule: Schedule::parse("0 2 * * *")?,
    ///     start: Some(window_name::parse("2026-06-01", &zone)?),
    ///     grid: Grid::parse("day")?,
    ///     dst: Dst::default(),
    ///     zone,
    /// };
    /// let revisions = Revisions::first(nightly, "2026-06-09T12:00:00Z".parse()?)?;
    /// let tick = revisions.expectation(revisions.find("2026-06-09")?).tick();
    /// assert_eq!(tick, Some("2026-06-10T00:00:00Z".parse()?), "two o'clock in Berlin");
    /// let before = revisions.expectation(revisions.find("2026-05-31")?);
    /// assert!(matches!(before, Expectation::LeftOut { revision: 1, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expectation(&self, window: Window) -> Expectation {
        let revision = self.in_force_at(window.start().timestamp());
        let first = revision.windows_from(revision.from).next();
        let from = first.map_or(revision.from, |(first, _)| first.start().timestamp());
        if window.start().timestamp() < from {
            return Expectation::LeftOut { revision: revision.number, from };
        }
        Expectation::Opens { revision: revision.number, tick: revision.tick_of(window) }
    }

    /// The windows that must exist and open at a tick after `after` and not after `until`, in order, with that tick.
    pub fn windows_that_open(
        &self,
        after: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = (Window, Timestamp)> {
        self.iter().flat_map(move |revision| {
            let ticks = revision.timetable.ticks();
            let is_its_first = ticks.after(revision.ticks_after).is_none_or(|first| after < first);
            // A window that an edit found uncovered opens at the revision's first tick, long after its end.
            let ended_after = if is_its_first { None } else { ticks.at_or_before(after) };
            revision
                .windows(ended_after.unwrap_or(Timestamp::MIN), until)
                .filter_map(move |(window, _)| Some((window, revision.tick_of(window)?)))
                .skip_while(move |(_, tick)| *tick <= after)
                .take_while(move |(_, tick)| *tick <= until)
        })
    }

    /// The name of a window: by the calendar and clock of the revision in force for it, if that name leads back to it; else
    /// an instant.
    pub fn name_of(&self, window: Window) -> String {
        let timetable = &self.in_force_at(window.start().timestamp()).timetable;
        let name = window_name::write(window.start(), timetable.grid, &timetable.zone);
        let leads_back = self.find(&name).is_ok_and(|found| found.start() == window.start());
        if leads_back { name } else { window.start().to_string() }
    }

    /// The windows around a time at which none begins, by name: the one that contains it, and the next.
    pub fn beside(&self, name: &str) -> Vec<String> {
        let meant = self.iter().find_map(|revision| {
            let meanings = window_name::meanings(name, &revision.timetable.zone).ok()?;
            let is_its_own = |at: &Timestamp| self.in_force_at(*at).number == revision.number;
            meanings.into_iter().map(LogicalTime::timestamp).find(is_its_own)
        });
        let window_at = |at| self.around(self.in_force_at(at), at);
        let containing = meant.and_then(window_at);
        let next = containing.and_then(|window| window_at(window.end().timestamp()));
        containing.into_iter().chain(next).map(|window| self.name_of(window)).collect()
    }

    /// The revision to which an instant belongs; before its own windows begin, it is the one that left the instant out.
    fn in_force_at(&self, at: Timestamp) -> &Revision {
        let has_begun = |revision: &&Revision| revision.until.is_none_or(|until| at < until);
        self.iter().find(has_begun).unwrap_or_else(|| self.current())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dst, Grid, Schedule, Timetable, Zone};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn timetable(schedule: &str, grid: &str, zone: &str, start: &str) -> Timetable {
        let zone = Zone::parse(zone).unwrap();
        Timetable {
            schedule: Schedule::parse(schedule).unwrap(),
            grid: Grid::parse(grid).unwrap(),
            dst: Dst::default(),
            start: Some(window_name::parse(start, &zone).unwrap()),
            zone,
        }
    }

    /// Days in Berlin until the tenth of June, hours in New York from then on.
    fn moved() -> Revisions {
        let days = timetable("0 2 * * *", "day", "Europe/Berlin", "2026-06-01");
        let mut revisions = Revisions::first(days, at("2026-06-01T00:00:00Z")).unwrap();
        let hours = timetable("5 * * * *", "hour", "America/New_York", "2026-06-01");
        let covered = at("2026-06-09T22:00:00Z");
        assert!(revisions.edit(hours, Some(covered), at("2026-06-10T12:00:00Z")).unwrap());
        revisions
    }

    #[test]
    fn h14_a_window_opens_at_the_tick_of_the_revision_in_force_for_it() {
        let revisions = moved();
        for (name, revision, tick) in [
            ("2026-06-01", 1, "2026-06-02T00:00:00Z"),
            ("2026-06-09", 1, "2026-06-10T00:00:00Z"),
            ("2026-06-09T22:00:00Z", 2, "2026-06-10T12:05:00Z"),
            ("2026-06-10T09:00", 2, "2026-06-10T14:05:00Z"),
        ] {
            let window = revisions.find(name).unwrap();
            let expected = Expectation::Opens { revision, tick: Some(at(tick)) };
            assert_eq!(revisions.expectation(window), expected, "{name}");
        }
        let before = revisions.expectation(revisions.find("2026-05-30").unwrap());
        assert_eq!(before, Expectation::LeftOut { revision: 1, from: at("2026-05-31T22:00:00Z") });
        assert_eq!(before.tick(), None);
    }

    #[test]
    fn the_tick_that_opens_a_window_is_the_one_of_the_tick_rule() {
        let revisions = moved();
        let due_windows: Vec<_> = revisions.current().due_windows(None).take(50).collect();
        assert!(due_windows.len() == 50);
        for due in due_windows {
            assert_eq!(revisions.expectation(due.window).tick(), Some(due.tick), "{due:?}");
        }
    }

    #[test]
    fn the_windows_that_open_in_an_interval_are_those_of_its_ticks() {
        let revisions = moved();
        let ends =
            ["2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", "2026-06-10T00:00:00Z", "2026-06-10T12:05:00Z"];
        let ends =
            ends.into_iter().chain(["2026-06-10T13:05:00Z", "2026-06-10T13:06:00Z", "2026-06-12T00:00:00Z"]);
        let ends: Vec<Timestamp> = ends.map(at).collect();
        let all: Vec<_> = revisions
            .windows(at("2026-05-31T22:00:00Z"), at("2026-06-13T00:00:00Z"))
            .filter_map(|(window, _)| Some((window, revisions.expectation(window).tick()?)))
            .collect();
        for after in &ends {
            for until in &ends {
                let due: Vec<_> = revisions.windows_that_open(*after, *until).collect();
                let expected: Vec<_> =
                    all.iter().copied().filter(|(_, tick)| after < tick && tick <= until).collect();
                assert_eq!(due, expected, "{after} {until}");
            }
        }
    }

    #[test]
    fn a_name_leads_back_to_its_window_under_every_revision() {
        let revisions = moved();
        for (name, written) in [
            ("2026-06-01", "2026-06-01"),
            ("2026-06-10T09:00", "2026-06-10T09:00"),
            ("2026-06-10T13:00:00Z", "2026-06-10T09:00"),
            ("2026-05-30", "2026-05-30"),
        ] {
            let window = revisions.find(name).unwrap();
            assert_eq!(revisions.name_of(window), written);
            assert_eq!(revisions.find(&revisions.name_of(window)).unwrap(), window);
        }
        let gone = Window::stored(at("2026-06-10T13:10:00Z"), at("2026-06-10T13:20:00Z")).unwrap();
        assert_eq!(
            revisions.name_of(gone),
            "2026-06-10T13:10:00Z",
            "no window of the grid, and named all the same"
        );
    }

    #[test]
    fn a_time_at_which_no_window_begins_has_neighbours() {
        let revisions = moved();
        for (name, beside) in [
            ("2026-06-10T09:30", ["2026-06-10T09:00", "2026-06-10T10:00"]),
            ("2026-06-03T12:00", ["2026-06-03", "2026-06-04"]),
            ("2026-06-10T13:30:00Z", ["2026-06-10T09:00", "2026-06-10T10:00"]),
        ] {
            assert_eq!(revisions.beside(name), beside, "{name}");
        }
        assert!(revisions.beside("yesterday").is_empty());
    }
}
