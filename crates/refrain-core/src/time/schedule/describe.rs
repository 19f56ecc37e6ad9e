//! A schedule in words.

use super::{Fold, Gap, Kind, Schedule};
use crate::timetable::Timetable;
use crate::{Grid, duration};

/// Describes when a job ticks, which windows a tick opens, and what happens when the clocks change.
///
/// ```
/// use refrain_core::{Dst, Grid, Schedule, Timetable, Zone, schedule};
///
/// let nightly = Timetable {
///     schedule: Schedule::parse("30 2 * * 1-5")?,
///     zone: Zone::parse("Europe/Berlin")?,
///     grid: Grid::Day,
///     dst: Dst::default(),
///     start: None,
/// };
/// assert_eq!(
///     schedule::describe(&nightly),
///     "At 02:30, on Monday, Tuesday, Wednesday, Thursday, and Friday (Europe/Berlin). \
///      Each tick opens the days that ended since the tick before. \
///      A time that the clock jumps over ticks when it jumps; one that comes twice ticks the first time."
/// );
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
pub fn describe(timetable: &Timetable) -> String {
    let Timetable { schedule, zone, grid, .. } = timetable;
    let mut sentences = vec![format!("{} ({zone}).", when(schedule)), format!("{}.", opens(*grid))];
    if schedule.is_fixed() && zone.jumps(jiff::Timestamp::UNIX_EPOCH).next().is_some() {
        sentences.push(format!("{}.", at_jumps(timetable)));
    }
    sentences.join(" ")
}

fn when(schedule: &Schedule) -> String {
    match &schedule.kind {
        Kind::Every(every) => format!("Every {}", duration::format(*every)),
        Kind::Cron(pattern) => pattern.words(),
    }
}

fn opens(grid: Grid) -> String {
    match grid {
        Grid::Tick => "Each tick opens one window, from the tick before to itself".to_owned(),
        Grid::Part(part) if grid.to_string() != "hour" => {
            format!(
                "Each tick opens the windows of {} that ended since the tick before",
                duration::format(part.length())
            )
        }
        _ => format!("Each tick opens the {grid}s that ended since the tick before"),
    }
}

fn at_jumps(timetable: &Timetable) -> String {
    let gap = match timetable.dst.gap {
        Gap::Next => "A time that the clock jumps over ticks when it jumps",
        Gap::Skip => "A time that the clock jumps over does not tick",
    };
    let fold = match timetable.dst.fold {
        Fold::First => "one that comes twice ticks the first time",
        Fold::Last => "one that comes twice ticks the second time",
        Fold::Both => "one that comes twice ticks both times",
    };
    format!("{gap}; {fold}")
}
