//! When a job runs: its timetable, or the queue.

use super::JobReader;
use crate::project::document::Value;
use crate::schedule::{Dst, Fold, Gap};
use crate::{CatchUp, Grid, Schedule, Timetable, Zone, duration, window_name};

/// Keys that have no meaning without ticks.
const OF_TICKS: [&str; 10] =
    ["timezone", "window", "start", "catch-up", "while-running", "dst", "scopes", "grace", "after", "spread"];

impl JobReader<'_> {
    /// The timetable, if all of it is valid.
    pub(super) fn timetable(&mut self) -> Option<Timetable> {
        self.one_way_to_run();
        let schedule = Schedule::parse(&self.text("schedule")?.value).ok()?;
        let zone = match self.text("timezone") {
            Some(zone) => Zone::parse(&zone.value).ok()?,
            None => Zone::utc(),
        };
        let grid = match self.text("window") {
            Some(grid) => Grid::parse(&grid.value).ok()?,
            None => Grid::Tick,
        };
        let start = match self.entries.get("start").and_then(Value::moment) {
            None => None,
            Some(start) => match window_name::parse(&start.value, &zone) {
                Ok(start) => Some(start),
                Err(error) => {
                    self.problems
                        .push(start.unreadable("`start` cannot be read as the start of a window", &error));
                    return None;
                }
            },
        };
        Some(Timetable { schedule, zone, grid, dst: self.dst(), start })
    }

    fn one_way_to_run(&mut self) {
        let is_queued = self.flag("queue");
        if self.has("schedule") {
            if is_queued {
                let help = "leave one of them out: a job has windows or a queue";
                self.problem(
                    "queue",
                    "`queue` and `schedule` cannot both be set",
                    "beside a `schedule`",
                    help,
                );
            }
            if self.has("start") && !self.has("catch-up") {
                let message = "`start` needs `catch-up`: whether the windows since then run";
                let help = "add catch-up = \"all\" to run them all, \"latest\" for the last one, or \"none\"";
                self.problem("start", message, "`catch-up` is missing", help);
            }
            return;
        }
        let is_reported = self.entries.get("queue").is_some_and(|queue| queue.flag().is_none());
        if is_reported {
            return;
        }
        if !is_queued {
            let message = format!("`{}` has no schedule and no queue", self.name);
            let help = "add schedule = \"@daily\", or queue = true for runs that are enqueued";
            self.problem("schedule", message, "neither `schedule` nor `queue = true` in this file", help);
            return;
        }
        for key in OF_TICKS.into_iter().filter(|key| self.entries.has(key)).collect::<Vec<_>>() {
            let message = format!("`{key}` has no effect without a `schedule`");
            self.problem(key, message, "a queued run has no window", "leave it out");
        }
    }

    fn dst(&self) -> Dst {
        let Some(table) = self.table("dst") else { return Dst::default() };
        Dst {
            gap: table.text("gap").and_then(|gap| gap.value.parse::<Gap>().ok()).unwrap_or_default(),
            fold: table.text("fold").and_then(|fold| fold.value.parse::<Fold>().ok()).unwrap_or_default(),
        }
    }

    pub(super) fn catch_up(&self) -> CatchUp {
        let within = self.table("catch-up").and_then(|table| table.text("within"));
        let word = || self.text("catch-up").and_then(|word| CatchUp::parse(&word.value).ok());
        match within.and_then(|within| duration::parse(&within.value).ok()) {
            Some(within) => CatchUp::Within(within),
            None => word().unwrap_or_default(),
        }
    }
}
