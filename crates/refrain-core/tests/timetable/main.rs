//! When jobs tick and which windows they open, as tables: five zones, the tick rule, catch-up, edits.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

mod any_schedule;
mod catch_up;
mod page;
mod peers;
mod preview;
mod retiring;
mod revisions;
mod tick_rule;
mod words;
mod zones;

use refrain_core::{Dst, Fold, Gap, Grid, Revisions, Schedule, Timetable, Zone, window_name};

/// An instant.
fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

/// A timetable without a start, with the default rules for jumps of the clock.
fn timetable(schedule: &str, zone: &str, grid: &str) -> Timetable {
    Timetable {
        schedule: Schedule::parse(schedule).unwrap(),
        zone: Zone::parse(zone).unwrap(),
        grid: Grid::parse(grid).unwrap(),
        dst: Dst::default(),
        start: None,
    }
}

/// A timetable with a start, written like the name of a window.
fn since(start: &str, mut timetable: Timetable) -> Timetable {
    timetable.start = Some(window_name::parse(start, &timetable.zone).unwrap());
    timetable
}

fn first(timetable: Timetable, now: &str) -> Revisions {
    Revisions::first(timetable, at(now)).unwrap()
}

/// All six combinations of policies for a clock change.
fn all_rules() -> impl Iterator<Item = Dst> {
    [Gap::Next, Gap::Skip]
        .into_iter()
        .flat_map(|gap| [Fold::First, Fold::Last, Fold::Both].into_iter().map(move |fold| Dst { gap, fold }))
}
