//! A timetable: everything a job file says about *when*.
//!
//! It is one value because no part means anything alone: the zone interprets the schedule and the grid, the start bounds
//! both. An edit of any part is a new [`Revision`](crate::Revision).

use std::fmt;

use jiff::Timestamp;

use crate::grid::Grid;
use crate::schedule::{Dst, Schedule, Ticks};
use crate::window::LogicalTime;
use crate::zone::Zone;

/// When a job ticks and how its time is cut into windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable {
    /// The schedule.
    pub schedule: Schedule,
    /// The zone whose clock and calendar the schedule and the windows follow.
    pub zone: Zone,
    /// The grid that cuts time into windows.
    pub grid: Grid,
    /// What to do with times that the clock skips or shows twice.
    pub dst: Dst,
    /// The first window that must exist begins here or at the next boundary of the grid. It is written like the name of a
    /// window: `2026-06-01`.
    pub start: Option<LogicalTime>,
}

impl Timetable {
    /// The ticks; an `every` is counted from the start, if there is one.
    pub fn ticks(&self) -> Ticks<'_> {
        let ticks = self.schedule.ticks(&self.zone, self.dst);
        match self.start {
            Some(start) => ticks.counted_from(start.timestamp()),
            None => ticks,
        }
    }

    /// The last boundary of the grid at or before `at`: where one window ends and the next begins.
    pub(crate) fn line_at_or_before(&self, at: Timestamp) -> Option<Timestamp> {
        match self.grid {
            Grid::Tick => self.ticks().at_or_before(at),
            grid => Some(grid.window_at(&self.zone, at)?.start().timestamp()),
        }
    }
}

impl fmt::Display for Timetable {
    /// In the terms of a job file, without defaults: `0 2 * * *, Europe/Berlin, window = "day"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timetable { schedule, zone, grid, .. } = self;
        write!(f, "{schedule}, {zone}, window = \"{grid}\"")
    }
}
