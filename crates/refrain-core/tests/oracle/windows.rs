//! The instants at which windows must begin, found by watching the clock minute by minute.

use crate::calendar::{DAY, date};
use crate::clock::Clock;

pub(crate) const GRIDS: [(&str, Grid); 9] = [
    ("hour", Grid::Cells(60)),
    ("day", Grid::Days),
    ("week", Grid::Weeks),
    ("month", Grid::Months),
    ("15m", Grid::Cells(15)),
    ("30m", Grid::Cells(30)),
    ("2h", Grid::Cells(2 * 60)),
    ("6h", Grid::Cells(6 * 60)),
    ("12h", Grid::Cells(12 * 60)),
];

#[derive(Clone, Copy)]
pub(crate) enum Grid {
    Days,
    Weeks,
    Months,
    /// Cells of this many minutes, counted from local midnight; the number divides a day.
    Cells(i64),
}

/// The minutes at which a window begins; every one but the first is also the end of the window before.
pub(crate) fn beginnings(clock: &Clock, grid: Grid) -> Vec<i64> {
    match grid {
        Grid::Days => new_highs(clock, |day| day),
        Grid::Weeks => new_highs(clock, |day| {
            let weekday = date(day).weekday;
            day - (weekday - 1)
        }),
        Grid::Months => new_highs(clock, |day| {
            let date = date(day);
            date.year * 12 + date.month
        }),
        Grid::Cells(length) => strikes(clock, length),
    }
}

/// A calendar window begins when the clock shows, for the first time, a date in it or after its first day.
fn new_highs(clock: &Clock, number: impl Fn(i64) -> i64) -> Vec<i64> {
    let mut begun = Vec::new();
    let mut today = clock.minutes[0].1 / DAY;
    let mut highest = number(today);
    for &(minute, wall) in &clock.minutes {
        let day = wall / DAY;
        if day != today {
            today = day;
            let now = number(day);
            if now > highest {
                begun.push(minute);
                highest = now;
            }
        }
    }
    begun
}

/// A cell begins when the clock reaches a multiple of its length: shows it, or is put forward over it.
///
/// Put back by whole cells, the clock reaches them again. Put back by anything else, it reaches none until it shows a
/// multiple that it has not shown.
fn strikes(clock: &Clock, length: i64) -> Vec<i64> {
    let mut begun = Vec::new();
    let (_, mut expected) = clock.minutes[0];
    let mut cell = expected / length;
    for &(minute, wall) in &clock.minutes {
        let now = wall / length;
        let back = expected - wall;
        if back > 0 && back % length == 0 {
            cell = if wall % length == 0 { now - 1 } else { now };
        }
        if now > cell {
            begun.push(minute);
            cell = now;
        }
        expected = wall + 1;
    }
    begun
}
