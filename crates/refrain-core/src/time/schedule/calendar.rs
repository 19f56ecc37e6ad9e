//! The calendar of a cron pattern: which days and times of day it names, searched without regard to jumps.
//!
//! Every field is a set of small numbers, so a set is one word of bits and a month of days is one as well. A search
//! looks at whole months: it computes the days of one month on which the pattern ticks and takes the nearest. Rejected:
//! `croner`, which keeps `L` and `LW` as two marks of the whole field and loses one of them when a list has both, reads
//! `*/2` beside a weekday differently from cron, and describes steps that a pattern does not have.

use jiff::civil::{Date, DateTime, Time};

/// The Gregorian calendar repeats after 400 years, weekdays included: a date that does not occur in that time never does.
const MONTHS_OF_THE_CALENDAR: usize = 400 * 12;

/// A set of numbers from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    pub(super) fn of(values: impl IntoIterator<Item = i8>) -> Set {
        let mut set = Set::default();
        values.into_iter().for_each(|value| set.insert(value));
        set
    }

    pub(super) fn insert(&mut self, value: i8) {
        self.0 |= bit(value);
    }

    pub(super) fn has(self, value: i8) -> bool {
        self.0 & bit(value) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) fn iter(self) -> impl DoubleEndedIterator<Item = i8> {
        (0..64).filter(move |value| self.has(*value))
    }

    fn and(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    fn at_or_after(self, value: i8) -> Option<i8> {
        let below = bit(value).wrapping_sub(1);
        let rest = self.0 & !below;
        (rest != 0).then(|| i8::try_from(rest.trailing_zeros()).ok()).flatten()
    }

    fn at_or_before(self, value: i8) -> Option<i8> {
        let above = bit(value.checked_add(1)?);
        let rest = self.0 & above.saturating_sub(1);
        (rest != 0).then(|| i8::try_from(rest.ilog2()).ok()).flatten()
    }
}

/// No bit for a value outside of a set.
fn bit(value: i8) -> u64 {
    u32::try_from(value).ok().and_then(|value| 1_u64.checked_shl(value)).unwrap_or(0)
}

/// The values of one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FieldValues {
    pub(super) set: Set,
    /// Days that depend on the month.
    pub(super) floating: Vec<Floating>,
    /// Whether the field begins with `*`, or is `?`: such a day or weekday field does not restrict the other one.
    pub(super) is_open: bool,
    /// The whole field is `*/n`.
    pub(super) step: Option<i8>,
}

impl FieldValues {
    /// One value.
    pub(super) fn only(value: i8) -> FieldValues {
        FieldValues { set: Set::of([value]), ..FieldValues::default() }
    }
}

/// A day that differs from month to month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floating {
    /// `L`, `L-3`: so many days before the last one.
    BeforeLast(i8),
    /// `15W`: the weekday nearest to a day, in the same month.
    Nearest(i8),
    /// `LW`, `L-3W`: the weekday nearest to the day so many days before the last one.
    NearestBeforeLast(i8),
    /// `MON#2`: the nth such weekday of the month.
    Nth(i8, i8),
    /// `5L`: the last such weekday of the month.
    LastOf(i8),
}

/// One month: how long it is, and the weekday of its first day, Sunday being 0.
#[derive(Clone, Copy)]
struct Month {
    length: i8,
    begins: i8,
}

impl Month {
    fn of(first: Date) -> Month {
        Month { length: first.days_in_month(), begins: first.weekday().to_sunday_zero_offset() }
    }

    fn weekday(self, day: i8) -> i8 {
        (self.begins + day - 1).rem_euclid(7)
    }

    fn days(self) -> Set {
        Set(bit(self.length + 1).saturating_sub(bit(1)))
    }

    /// The first day of the month that is this weekday.
    fn first(self, weekday: i8) -> i8 {
        1 + (weekday - self.begins).rem_euclid(7)
    }

    /// All days that are one of these weekdays.
    fn on(self, weekdays: Set) -> Set {
        // Every seventh bit, five times.
        const WEEKLY: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
        let mut days = 0;
        for weekday in 0..7 {
            if weekdays.has(weekday) {
                days |= WEEKLY << self.first(weekday);
            }
        }
        Set(days).and(self.days())
    }

    /// The working day nearest to a day of this month: never in another month.
    fn nearest(self, day: i8) -> Option<i8> {
        if !(1..=self.length).contains(&day) {
            return None;
        }
        Some(match self.weekday(day) {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        })
    }

    fn floating(self, floating: Floating) -> Option<i8> {
        let day = match floating {
            Floating::BeforeLast(before) => self.length - before,
            Floating::Nearest(day) => self.nearest(day)?,
            Floating::NearestBeforeLast(before) => self.nearest(self.length - before)?,
            Floating::Nth(weekday, nth) => self.first(weekday) + 7 * (nth - 1),
            Floating::LastOf(weekday) => self.length - (self.weekday(self.length) - weekday).rem_euclid(7),
        };
        (1..=self.length).contains(&day).then_some(day)
    }

    fn floating_days(self, values: &FieldValues) -> Set {
        Set::of(values.floating.iter().filter_map(|floating| self.floating(*floating)))
    }
}

/// The dates of a pattern: month, day and weekday together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dates {
    pub(super) months: FieldValues,
    pub(super) days: FieldValues,
    pub(super) weekdays: FieldValues,
}

impl Dates {
    /// As in crontab(5): if both fields restrict, either of them ticks; else both must match.
    pub(super) fn either(&self) -> bool {
        !self.days.is_open && !self.weekdays.is_open
    }

    fn of_month(&self, first: Date) -> Set {
        if !self.months.set.has(first.month()) {
            return Set::default();
        }
        let month = Month::of(first);
        let by_day = self.days.set.and(month.days()).or(month.floating_days(&self.days));
        let by_weekday = month.on(self.weekdays.set).or(month.floating_days(&self.weekdays));
        if self.either() { by_day.or(by_weekday) } else { by_day.and(by_weekday) }
    }

    fn at_or_after(&self, date: Date) -> Option<Date> {
        let (mut first, mut from) = (date.first_of_month(), date.day());
        for _ in 0..=MONTHS_OF_THE_CALENDAR {
            if let Some(day) = self.of_month(first).at_or_after(from) {
                return Date::new(first.year(), first.month(), day).ok();
            }
            (first, from) = (first.last_of_month().tomorrow().ok()?, 1);
        }
        None
    }

    fn at_or_before(&self, date: Date) -> Option<Date> {
        let (mut first, mut until) = (date.first_of_month(), date.day());
        for _ in 0..=MONTHS_OF_THE_CALENDAR {
            if let Some(day) = self.of_month(first).at_or_before(until) {
                return Date::new(first.year(), first.month(), day).ok();
            }
            let last = first.yesterday().ok()?;
            (first, until) = (last.first_of_month(), last.day());
        }
        None
    }
}

/// The times of day of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) seconds: FieldValues,
    pub(super) minutes: FieldValues,
    pub(super) hours: FieldValues,
}

impl Times {
    fn at_or_after(&self, time: Time) -> Option<Time> {
        let (hours, minutes, seconds) = (self.hours.set, self.minutes.set, self.seconds.set);
        let (hour, minute) = (time.hour(), time.minute());
        let (first_minute, first_second) = (minutes.at_or_after(0)?, seconds.at_or_after(0)?);
        if hours.has(hour) {
            if minutes.has(minute)
                && let Some(second) = seconds.at_or_after(time.second())
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = minutes.at_or_after(minute + 1) {
                return Time::new(hour, minute, first_second, 0).ok();
            }
        }
        Time::new(hours.at_or_after(hour + 1)?, first_minute, first_second, 0).ok()
    }

    fn at_or_before(&self, time: Time) -> Option<Time> {
        let (hours, minutes, seconds) = (self.hours.set, self.minutes.set, self.seconds.set);
        let (hour, minute) = (time.hour(), time.minute());
        let (last_minute, last_second) = (minutes.at_or_before(59)?, seconds.at_or_before(59)?);
        if hours.has(hour) {
            if minutes.has(minute)
                && let Some(second) = seconds.at_or_before(time.second())
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = minutes.at_or_before(minute - 1) {
                return Time::new(hour, minute, last_second, 0).ok();
            }
        }
        Time::new(hours.at_or_before(hour - 1)?, last_minute, last_second, 0).ok()
    }
}

/// The first time at or after a whole second.
pub(super) fn at_or_after(dates: &Dates, times: &Times, wall: DateTime) -> Option<DateTime> {
    let date = dates.at_or_after(wall.date())?;
    if date > wall.date() {
        return Some(date.to_datetime(times.at_or_after(Time::midnight())?));
    }
    match times.at_or_after(wall.time()) {
        Some(time) => Some(date.to_datetime(time)),
        None => {
            Some(dates.at_or_after(date.tomorrow().ok()?)?.to_datetime(times.at_or_after(Time::midnight())?))
        }
    }
}

/// The last time at or before a whole second.
pub(super) fn at_or_before(dates: &Dates, times: &Times, wall: DateTime) -> Option<DateTime> {
    let date = dates.at_or_before(wall.date())?;
    if date < wall.date() {
        return Some(date.to_datetime(times.at_or_before(Time::MAX)?));
    }
    match times.at_or_before(wall.time()) {
        Some(time) => Some(date.to_datetime(time)),
        None => Some(dates.at_or_before(date.yesterday().ok()?)?.to_datetime(times.at_or_before(Time::MAX)?)),
    }
}
