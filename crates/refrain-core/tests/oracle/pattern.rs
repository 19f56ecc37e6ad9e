//! The patterns, each with a predicate in Rust that means the same as its cron expression.
//!
//! No field is parsed here: a second parser could contain the same mistake.

use crate::calendar::{DAY, Reading, reading};
use crate::clock::Period;

pub(crate) struct Pattern {
    pub(crate) text: &'static str,
    /// Whether the second, minute or hour field contains a `*`.
    pub(crate) interval: bool,
    pub(crate) seconds: &'static [i64],
    pub(crate) matches: fn(&Reading) -> bool,
}

const fn fixed(text: &'static str, matches: fn(&Reading) -> bool) -> Pattern {
    Pattern { text, interval: false, seconds: &[0], matches }
}

const fn interval(text: &'static str, matches: fn(&Reading) -> bool) -> Pattern {
    Pattern { text, interval: true, seconds: &[0], matches }
}

fn at(reading: &Reading, hour: i64, minute: i64) -> bool {
    reading.hour == hour && reading.minute == minute
}

const MONDAY: i64 = 1;
const FRIDAY: i64 = 5;
const SATURDAY: i64 = 6;
const SUNDAY: i64 = 7;

pub(crate) static PATTERNS: [Pattern; 32] = [
    fixed("30 2 * * *", |r| at(r, 2, 30)),
    fixed("15,45 2 * * *", |r| at(r, 2, 15) || at(r, 2, 45)),
    fixed("15 2 * * *", |r| at(r, 2, 15)),
    fixed("0 0 * * *", |r| at(r, 0, 0)),
    fixed("0 0 1 * *", |r| at(r, 0, 0) && r.date.day == 1),
    fixed("0 2 * * 1-5", |r| at(r, 2, 0) && r.date.weekday <= FRIDAY),
    fixed("30 1 * * *", |r| at(r, 1, 30)),
    interval("*/30 * * * *", |r| r.minute == 0 || r.minute == 30),
    interval("0 * * * *", |r| r.minute == 0),
    interval("*/15 2 * * *", |r| r.hour == 2 && r.minute % 15 == 0),
    interval("0 */2 * * *", |r| r.minute == 0 && r.hour % 2 == 0),
    fixed("0 0 L * *", |r| at(r, 0, 0) && r.date.day == r.date.last),
    fixed("0 9 15W * *", |r| {
        let weekday = r.date.weekday;
        let nearest = match r.date.day {
            14 => weekday == FRIDAY,
            15 => weekday != SATURDAY && weekday != SUNDAY,
            16 => weekday == MONDAY,
            _ => false,
        };
        at(r, 9, 0) && nearest
    }),
    fixed("0 0 * * 5L", |r| at(r, 0, 0) && r.date.weekday == FRIDAY && r.date.day + 7 > r.date.last),
    fixed("0 9 * * MON#1", |r| at(r, 9, 0) && r.date.weekday == MONDAY && r.date.day <= 7),
    fixed("0 0 13 * 5", |r| at(r, 0, 0) && (r.date.day == 13 || r.date.weekday == FRIDAY)),
    Pattern { text: "30 0 2 * * *", interval: false, seconds: &[30], matches: |r| at(r, 2, 0) },
    fixed("59 23 * * *", |r| at(r, 23, 59)),
    fixed("0,30 0-3 * * *", |r| r.hour <= 3 && (r.minute == 0 || r.minute == 30)),
    interval("@hourly", |r| r.minute == 0),
    fixed("10 1-3/2 * * *", |r| at(r, 1, 10) || at(r, 3, 10)),
    Pattern { text: "*/20 30 2 * * *", interval: true, seconds: &[0, 20, 40], matches: |r| at(r, 2, 30) },
    fixed("0 2 */2 * SUN", |r| at(r, 2, 0) && r.date.day % 2 == 1 && r.date.weekday == SUNDAY),
    fixed("0 2 1-14 * */2", |r| {
        let is_even = [SUNDAY, 2, 4, SATURDAY].contains(&r.date.weekday);
        at(r, 2, 0) && r.date.day <= 14 && is_even
    }),
    fixed("20/15 2 * * *", |r| r.hour == 2 && [20, 35, 50].contains(&r.minute)),
    fixed("30 1/2 * * *", |r| r.minute == 30 && r.hour % 2 == 1),
    interval("10/30 * * * *", |r| r.minute == 10 || r.minute == 40),
    fixed("0 0 L-3 * *", |r| at(r, 0, 0) && r.date.day == r.date.last - 3),
    fixed("0 0 L,LW * *", |r| {
        let Reading { date, .. } = r;
        let before_weekend = date.weekday == FRIDAY && date.day + 2 >= date.last;
        at(r, 0, 0) && (date.day == date.last || before_weekend)
    }),
    fixed("45 1 ? MAR,OCT 0,7", |r| {
        at(r, 1, 45) && (r.date.month == 3 || r.date.month == 10) && r.date.weekday == SUNDAY
    }),
    fixed("0 12 LW * *", |r| {
        let Reading { date, .. } = r;
        let last_weekday = date.weekday <= FRIDAY && date.day == date.last;
        let weekend_follows = date.weekday == FRIDAY && date.day + 2 >= date.last;
        at(r, 12, 0) && (last_weekday || weekend_follows)
    }),
    fixed("0 0 29 2 *", |r| at(r, 0, 0) && r.date.month == 2 && r.date.day == 29),
];

/// The patterns that match at each wall minute of a period, one bit each: shared by all zones.
pub(crate) struct Matches {
    first: i64,
    bits: Vec<u32>,
}

impl Matches {
    pub(crate) fn new(period: Period) -> Self {
        let (first, end) = (period.from - 2 * DAY, period.until + 2 * DAY);
        let bits = (first..end).map(|wall| {
            let reading = reading(wall);
            let matching = PATTERNS.iter().enumerate().filter(|(_, pattern)| (pattern.matches)(&reading));
            matching.fold(0, |bits, (index, _)| bits | 1 << index)
        });
        Self { first, bits: bits.collect() }
    }

    pub(crate) fn at(&self, wall: i64) -> u32 {
        self.bits[usize::try_from(wall - self.first).unwrap()]
    }
}

/// The index of a pattern in the table.
pub(crate) fn index_of(text: &str) -> usize {
    PATTERNS.iter().position(|pattern| pattern.text == text).unwrap()
}

#[test]
fn the_days_of_the_patterns_agree_with_a_paper_calendar() {
    use crate::calendar::midnight;
    let days = |text: &str, month: i64| -> Vec<i64> {
        let matches = PATTERNS[index_of(text)].matches;
        let from = midnight(2026, month, 1);
        let length = reading(from).date.last;
        let walls = (from..from + length * DAY).filter(|wall| matches(&reading(*wall)));
        walls.map(|wall| reading(wall).date.day).collect()
    };
    assert_eq!(days("0 0 L * *", 2), [28]);
    assert_eq!(days("0 9 15W * *", 8), [14]);
    assert_eq!(days("0 9 15W * *", 11), [16]);
    assert_eq!(days("0 9 15W * *", 12), [15]);
    assert_eq!(days("0 0 * * 5L", 5), [29]);
    assert_eq!(days("0 9 * * MON#1", 6), [1]);
    assert_eq!(days("0 0 13 * 5", 11), [6, 13, 20, 27]);
    assert_eq!(days("0 0 13 * 5", 10), [2, 9, 13, 16, 23, 30]);
    assert_eq!(days("0 12 LW * *", 5), [29]);
    assert_eq!(days("0 12 LW * *", 1), [30]);
    assert_eq!(days("0 12 LW * *", 3), [31]);
    assert_eq!(days("0 2 */2 * SUN", 2), [1, 15]);
    assert_eq!(days("0 2 1-14 * */2", 2), [1, 3, 5, 7, 8, 10, 12, 14]);
    assert_eq!(days("0 0 L-3 * *", 2), [25]);
    assert_eq!(days("0 0 L,LW * *", 1), [30, 31]);
    assert_eq!(days("0 0 L,LW * *", 2), [27, 28]);
    assert_eq!(days("0 0 L,LW * *", 3), [31]);
    assert_eq!(days("45 1 ? MAR,OCT 0,7", 3), [1, 8, 15, 22, 29]);
    assert!(days("45 1 ? MAR,OCT 0,7", 4).is_empty());
    assert_eq!(days("0 2 * * 1-5", 2).len(), 20);
}
