//! The calendar, counted day by day from Thursday, 1 January 1970.
//!
//! Closed formulas would run faster, but counting is easier to verify; sixty years of counting take a millisecond.

use std::sync::LazyLock;

pub(crate) const DAY: i64 = 24 * 60;

/// One day of the calendar. Weekdays are 1 (Monday) to 7 (Sunday); `last` is the length of the month.
#[derive(Clone, Copy)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) weekday: i64,
    pub(crate) last: i64,
}

/// A reading of a wall clock, to the minute.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) date: Date,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
}

static DATES: LazyLock<Vec<Date>> = LazyLock::new(|| {
    let mut date = Date { year: 1970, month: 1, day: 1, weekday: 4, last: 31 };
    let mut dates = Vec::new();
    while date.year < 2030 {
        dates.push(date);
        date.day += 1;
        date.weekday = if date.weekday == 7 { 1 } else { date.weekday + 1 };
        if date.day > date.last {
            date.day = 1;
            date.month += 1;
        }
        if date.month > 12 {
            date.month = 1;
            date.year += 1;
        }
        date.last = length(date.year, date.month);
    }
    dates
});

fn length(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The date that is `day` days after 1 January 1970.
pub(crate) fn date(day: i64) -> Date {
    DATES[usize::try_from(day).unwrap()]
}

/// Midnight of a date, in minutes since midnight of 1 January 1970.
pub(crate) fn midnight(year: i64, month: i64, day: i64) -> i64 {
    let found = DATES.iter().position(|date| (date.year, date.month, date.day) == (year, month, day));
    i64::try_from(found.unwrap()).unwrap() * DAY
}

/// The reading of a clock `wall` minutes after it showed midnight of 1 January 1970.
pub(crate) fn reading(wall: i64) -> Reading {
    Reading { date: date(wall.div_euclid(DAY)), hour: wall.rem_euclid(DAY) / 60, minute: wall % 60 }
}

#[test]
fn the_calendar_has_well_known_days_right() {
    for (year, month, day, weekday, last) in [
        (2000, 2, 29, 2, 29),
        (2011, 12, 30, 5, 31),
        (2026, 1, 1, 4, 31),
        (2026, 2, 28, 6, 28),
        (2028, 2, 29, 2, 29),
    ] {
        let found = date(midnight(year, month, day) / DAY);
        assert_eq!((found.weekday, found.last), (weekday, last), "{year}-{month}-{day}");
    }
    assert_eq!(midnight(2026, 1, 1) * 60, 1_767_225_600);
}
