//! One local day in one zone: its ticks and windows, in local time.

use crate::calendar::midnight;
use crate::clock::{Clock, Period};
use crate::pattern::{Matches, index_of};
use crate::ticks::{Fold, Found, Gap};
use crate::windows::{GRIDS, beginnings};

/// A zone and a date there.
pub(crate) type Where = (&'static str, (i64, i64, i64));

/// A local day in a zone: from the first instant of its date to the first instant of the next one.
pub(crate) struct Day {
    pub(crate) zone: &'static str,
    pub(crate) clock: Clock,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Day {
    pub(crate) fn new(zone: &'static str, (year, month, day): (i64, i64, i64)) -> Self {
        let clock = Clock::of(zone, Period::around((year, month, day), 4));
        let reaches =
            |wall: i64| clock.minutes.iter().find(|(_, shown)| *shown >= wall).map(|(minute, _)| minute * 60);
        let from = midnight(year, month, day);
        let (from, until) = (reaches(from).unwrap(), reaches(from + 24 * 60).unwrap());
        Self { zone, clock, from, until }
    }

    /// The oracle's ticks of the day.
    pub(crate) fn ticks(&self, pattern: &str, policy: (Gap, Fold)) -> Vec<i64> {
        let found = Found::on(&self.clock, &Matches::new(self.clock.period));
        self.within(found.ticks(index_of(pattern), policy))
    }

    /// The oracle's beginnings of windows on that day.
    pub(crate) fn beginnings(&self, grid: &str) -> Vec<i64> {
        let (_, grid) = GRIDS.iter().find(|(name, _)| *name == grid).unwrap();
        self.within(beginnings(&self.clock, *grid).into_iter().map(|minute| minute * 60).collect())
    }

    /// The instants that lie on the day.
    fn within(&self, mut instants: Vec<i64>) -> Vec<i64> {
        instants.retain(|instant| (self.from..self.until).contains(instant));
        instants
    }

    /// The local times of the instants, without the date.
    pub(crate) fn times_of(&self, instants: &[i64]) -> String {
        let times = instants.iter().map(|instant| self.clock.write(*instant));
        let times: Vec<_> = times.map(|written| written.split_once('T').unwrap().1.to_owned()).collect();
        times.join(" ")
    }

    /// As many of the first instants as `text` lists, and at least one: an empty text asserts that there is none.
    pub(crate) fn times_like(&self, times_of: &str, instants: &[i64]) -> String {
        let count = times_of.split(' ').count();
        self.times_of(&instants[..count.min(instants.len())])
    }
}
