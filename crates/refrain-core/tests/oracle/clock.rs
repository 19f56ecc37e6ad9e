//! The wall clock of a zone, recorded for every minute of a period.
//!
//! The zone database gives only the offset at an instant. What the clock shows, where it jumps forward (a gap) and
//! where it goes back (a fold) is derived from the minutes.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::calendar::{DAY, Reading, midnight, reading};

/// Instants from `from` up to `until`, in minutes since the epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Period {
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Period {
    pub(crate) fn two_years() -> Self {
        Self { from: midnight(2026, 1, 1), until: midnight(2028, 1, 1) }
    }

    /// The given number of days on both sides of a date.
    pub(crate) fn around((year, month, day): (i64, i64, i64), days: i64) -> Self {
        let middle = midnight(year, month, day);
        Self { from: middle - days * DAY, until: middle + days * DAY }
    }
}

/// The offsets of a zone in minutes, each with the first minute at which it holds.
pub(crate) type Offsets = Vec<(i64, i64)>;

/// Reads the offset at every `probe`-th minute, and at each minute in between where two of them differ.
pub(crate) fn offsets(zone: &TimeZone, period: Period, probe: i64) -> Offsets {
    let mut offset = offset_at(zone, period.from);
    let mut found = vec![(period.from, offset)];
    let mut at = period.from;
    while at < period.until - 1 {
        let next = (at + probe).min(period.until - 1);
        if offset_at(zone, next) != offset {
            for minute in at + 1..=next {
                let now = offset_at(zone, minute);
                if now != offset {
                    found.push((minute, now));
                    offset = now;
                }
            }
        }
        at = next;
    }
    found
}

fn offset_at(zone: &TimeZone, minute: i64) -> i64 {
    let seconds = i64::from(zone.to_offset(Timestamp::from_second(minute * 60).unwrap()).seconds());
    assert_eq!(seconds % 60, 0, "the oracle counts minutes: it cannot follow an offset of {seconds} seconds");
    seconds / 60
}

pub(crate) fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// The clock is put forward or back at the minute `at`: it would have shown `before` and shows `after`.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) at: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl Change {
    pub(crate) fn is_gap(&self) -> bool {
        self.after > self.before
    }
}

pub(crate) struct Clock {
    pub(crate) period: Period,
    /// Each minute of the period with what the clock shows, counted from midnight of 1 January 1970.
    pub(crate) minutes: Vec<(i64, i64)>,
    pub(crate) changes: Vec<Change>,
}

impl Clock {
    pub(crate) fn new(period: Period, offsets: &Offsets) -> Self {
        let mut minutes = Vec::new();
        for (index, (from, offset)) in offsets.iter().enumerate() {
            let until = offsets.get(index + 1).map_or(period.until, |(next, _)| *next);
            minutes.extend((*from..until).map(|minute| (minute, minute + offset)));
        }
        let mut changes = Vec::new();
        let (_, mut expected) = minutes[0];
        for &(at, shown) in &minutes {
            if shown != expected {
                changes.push(Change { at, before: expected, after: shown });
            }
            expected = shown + 1;
        }
        Self { period, minutes, changes }
    }

    /// The clock of one zone, read at every single minute.
    pub(crate) fn of(name: &str, period: Period) -> Self {
        Self::new(period, &offsets(&zone(name), period, 1))
    }

    /// An instant as the people of the zone write it; outside the period as in UTC.
    pub(crate) fn write(&self, second: i64) -> String {
        let minute = second.div_euclid(60);
        let index = usize::try_from(minute - self.period.from).ok();
        let Some((_, wall)) = index.and_then(|index| self.minutes.get(index)) else {
            return format!("{}Z, outside the period", Timestamp::from_second(second).unwrap());
        };
        let (offset, at) = (wall - minute, write_wall(*wall));
        let sign = if offset < 0 { '-' } else { '+' };
        let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
        match second.rem_euclid(60) {
            0 => format!("{at}{sign}{hours:02}:{minutes:02}"),
            rest => format!("{at}:{rest:02}{sign}{hours:02}:{minutes:02}"),
        }
    }

    /// The changes within three days of an instant, to explain a disagreement.
    pub(crate) fn changes_near(&self, second: i64) -> String {
        let near = self.changes.iter().filter(|change| (change.at * 60 - second).abs() < 3 * DAY * 60);
        let text: Vec<_> = near
            .map(|change| {
                let (before, after) = (write_wall(change.before), write_wall(change.after));
                let kind = if change.is_gap() { "gap" } else { "fold" };
                format!("{kind} at {}Z: {before} becomes {after}", write_wall(change.at))
            })
            .collect();
        if text.is_empty() { "none near".to_owned() } else { text.join("; ") }
    }
}

pub(crate) fn write_wall(wall: i64) -> String {
    let Reading { date, hour, minute } = reading(wall);
    format!("{}-{:02}-{:02}T{hour:02}:{minute:02}", date.year, date.month, date.day)
}

#[test]
fn a_clock_shows_local_time() {
    let clock = Clock::of("America/St_Johns", Period::around((2026, 3, 8), 4));
    let change = clock.changes[0].at * 60;
    assert_eq!(clock.changes.len(), 1);
    assert_eq!(clock.write(change - 1), "2026-03-08T01:59:59-03:30");
    assert_eq!(clock.write(change), "2026-03-08T03:00-02:30");
    assert_eq!(
        clock.changes_near(change),
        "gap at 2026-03-08T05:30Z: 2026-03-08T02:00 becomes 2026-03-08T03:00"
    );
}
