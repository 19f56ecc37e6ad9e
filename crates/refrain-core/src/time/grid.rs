//! The grid that cuts time into windows.
//!
//! The windows of a grid follow one another without gap or overlap, in every zone and across every jump of
//! its clock:
//!
//! - **day, week, month** begin when the calendar first shows their first date: at midnight, or when the
//!   clock jumps over midnight. A day has 23, 24 or 25 hours and is never split.
//! - **hour and shorter or longer parts of a day** begin when the clock strikes: when it shows a multiple of
//!   their length since midnight, or jumps forward over one. When the clock goes back by whole windows (an
//!   hour, with hour windows), the repeated ones are windows of their own, as for a person who
//!   waited through both. When it goes back by anything else (half an hour, with hour windows, on Lord Howe),
//!   the window in which that happens is longer.
//! - **tick** has no boundaries of its own: its windows reach from one tick of the schedule to the next.
//!
//! Rejected: counting fixed lengths from an epoch, which drifts against the local day, and lengths that do
//! not divide a day, whose windows would begin at another hour each day.

use std::fmt;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Span, Timestamp};

use crate::window::{EARLIEST, LATEST, Window};
use crate::zone::{Stretch, Zone};
use crate::{ParseError, duration};

const WHAT: &str = "window";
const DAY_SECONDS: u32 = 86_400;

/// How a job's time is cut into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grid {
    /// Parts of a day: hours, quarters of an hour, halves of a day.
    Part(PartOfDay),
    /// The zone's calendar days.
    Day,
    /// Weeks of the zone's calendar, from Monday.
    Week,
    /// Months of the zone's calendar.
    Month,
    /// From one tick to the next.
    Tick,
}

/// A length of at least a minute that divides 24 hours evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartOfDay(u32);

impl PartOfDay {
    fn new(length: Duration) -> Option<PartOfDay> {
        let seconds = u32::try_from(length.as_secs()).ok()?;
        let divides = (60..DAY_SECONDS).contains(&seconds) && DAY_SECONDS.is_multiple_of(seconds);
        divides.then_some(PartOfDay(seconds))
    }

    /// The length that most of these windows have.
    pub fn length(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }

    /// The multiple of this length since midnight that `wall` shows or has passed.
    fn line_at_or_before(self, wall: DateTime) -> DateTime {
        let time = wall.time();
        let seconds = [(time.hour(), 3_600), (time.minute(), 60), (time.second(), 1)]
            .into_iter()
            .map(|(count, size)| i32::from(count) * size)
            .sum::<i32>();
        // `PartOfDay` is below a day, so it fits.
        let length = i32::try_from(self.0).unwrap_or(i32::MAX);
        let line = Span::new().seconds(seconds - seconds % length);
        let midnight = wall.date().to_datetime(Time::midnight());
        midnight.checked_add(line).unwrap_or(midnight)
    }

    fn next_line(self, line: DateTime) -> Option<DateTime> {
        line.checked_add(self.length()).ok()
    }
}

impl Grid {
    /// Reads `hour`, `day`, `week`, `month`, `tick` or a length that divides a day, such as `15m` or `6h`.
    ///
    /// ```
    /// use refrain_core::Grid;
    ///
    /// assert_eq!(Grid::parse("15m")?.to_string(), "15m");
    /// assert!(Grid::parse("7h").unwrap_err().reason().contains("does not divide a day"));
    /// # Ok::<(), refrain_core::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Grid, ParseError> {
        const ADVICE: &str =
            "write hour, day, week, month, tick, or a part of a day such as \"15m\" or \"6h\"";
        match text {
            "hour" => return Ok(Grid::Part(PartOfDay(3_600))),
            "day" => return Ok(Grid::Day),
            "week" => return Ok(Grid::Week),
            "month" => return Ok(Grid::Month),
            "tick" => return Ok(Grid::Tick),
            _ => {}
        }
        let wrong = |reason: String| ParseError::whole(WHAT, text, reason);
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong(format!("`{text}` is not a valid kind of window")).help(ADVICE));
        }
        let length = duration::parse(text).map_err(|error| error.inside(WHAT, text, 0).help(ADVICE))?;
        match PartOfDay::new(length) {
            Some(part) => Ok(Grid::Part(part)),
            None if length.as_secs() == u64::from(DAY_SECONDS) => {
                Err(wrong("a day is not always 24 hours long".to_owned()).help("write \"day\""))
            }
            None if length.as_secs() == 7 * u64::from(DAY_SECONDS) => {
                Err(wrong("a week is not always 168 hours long".to_owned()).help("write \"week\""))
            }
            None if length.as_secs() < 60 => {
                Err(wrong("it is shorter than a minute".to_owned()).help(ADVICE))
            }
            None => Err(wrong(format!("{text} does not divide a day evenly")).help(
                "write \"tick\" for windows from one tick to the next, or a part of a day such as \"6h\"",
            )),
        }
    }

    /// The whole windows that end after `after` and not after `until`, in order. A tick grid has none of its
    /// own.
    pub fn windows(self, zone: &Zone, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Window> {
        self.windows_after(zone, after).take_while(move |window| window.end().timestamp() <= until)
    }

    /// The windows that end after `after`, in order, without end.
    pub(crate) fn windows_after(self, zone: &Zone, after: Timestamp) -> impl Iterator<Item = Window> {
        let after = after.max(EARLIEST);
        let mut lines = self.lines(zone, after);
        let mut start = lines.next();
        std::iter::from_fn(move || {
            loop {
                let (from, end) = (start?, lines.next()?);
                start = Some(end);
                if end > LATEST {
                    return None;
                }
                if end > after
                    && let Ok(window) = Window::stored(from, end)
                {
                    return Some(window);
                }
            }
        })
    }

    /// The window that an instant lies in.
    pub(crate) fn window_at(self, zone: &Zone, at: Timestamp) -> Option<Window> {
        self.windows_after(zone, at).next()
    }

    /// The boundaries of windows, in order, from a boundary at or before `at`.
    fn lines<'z>(self, zone: &'z Zone, at: Timestamp) -> Box<dyn Iterator<Item = Timestamp> + 'z> {
        let today = zone.wall(at).date();
        match self {
            Grid::Part(part) => match Strokes::from_day(zone, part, today) {
                Some(strokes) => Box::new(strokes),
                None => Box::new(std::iter::empty()),
            },
            Grid::Day => dates(zone, today, Span::new().days(1)),
            Grid::Week => {
                let back = today.weekday().since(Weekday::Monday);
                dates(zone, today.saturating_sub(Span::new().days(back)), Span::new().weeks(1))
            }
            Grid::Month => dates(zone, today.first_of_month(), Span::new().months(1)),
            Grid::Tick => Box::new(std::iter::empty()),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grid::Part(PartOfDay(3_600)) => f.write_str("hour"),
            Grid::Part(part) => f.write_str(&duration::format(part.length())),
            Grid::Day => f.write_str("day"),
            Grid::Week => f.write_str("week"),
            Grid::Month => f.write_str("month"),
            Grid::Tick => f.write_str("tick"),
        }
    }
}

/// The instants at which the calendar first shows each date of a series. A date that the zone skipped begins when the next
/// one does, and so has no window.
fn dates(zone: &Zone, first: Date, step: Span) -> Box<dyn Iterator<Item = Timestamp> + '_> {
    let dates = std::iter::successors(Some(first), move |date| date.checked_add(step).ok());
    Box::new(dates.map_while(move |date| zone.reaches(date.to_datetime(Time::midnight()))))
}

/// The instants at which the zone's clock reaches the boundaries of a grid.
struct Strokes<'z> {
    zone: &'z Zone,
    part: PartOfDay,
    stretch: Stretch,
    /// The first such instant, not returned yet.
    first: Option<Timestamp>,
    /// The boundary that the clock reaches next.
    line: DateTime,
}

impl<'z> Strokes<'z> {
    /// The first instant of a calendar day is a boundary on every grid.
    fn from_day(zone: &'z Zone, part: PartOfDay, today: Date) -> Option<Strokes<'z>> {
        let first = zone.reaches(today.to_datetime(Time::midnight()))?;
        let line = part.next_line(part.line_at_or_before(zone.wall(first)))?;
        Some(Strokes { zone, part, stretch: zone.stretch(first), first: Some(first), line })
    }
}

impl Iterator for Strokes<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let stroke = self.stretch.instant(self.line)?;
            let Some(jump) = self.stretch.until.filter(|jump| jump.at <= stroke) else {
                self.line = self.part.next_line(self.line)?;
                return Some(stroke);
            };
            self.stretch = self.zone.stretch(jump.at);
            let shown = jump.wall_after();
            let line = self.part.line_at_or_before(shown);
            let by_whole_windows = jump.length().as_secs().is_multiple_of(u64::from(self.part.0));
            if jump.is_gap() && self.line <= shown {
                self.line = self.part.next_line(line)?;
                return Some(jump.at);
            }
            if !jump.is_gap() && by_whole_windows {
                self.line = self.part.next_line(line)?;
                if line == shown {
                    return Some(jump.at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use proptest::prelude::*;

    #[test]
    fn a_printed_grid_can_be_parsed() {
        for text in ["hour", "day", "week", "month", "tick", "15m", "6h", "1m", "45m"] {
            assert_eq!(Grid::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Grid::parse("1h").unwrap(), Grid::parse("hour").unwrap());
    }

    #[test]
    fn an_invalid_grid_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "not a valid kind of window"),
            ("fortnight", "not a valid kind of window"),
            ("7h", "does not divide a day"),
            ("2d", "does not divide a day"),
            ("24h", "not always 24 hours"),
            ("7d", "not always 168 hours"),
            ("30s", "shorter than a minute"),
            ("15x", "not a valid unit of time"),
        ] {
            let error = Grid::parse(text).unwrap_err();
            assert!(error.reason().contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_date_that_a_zone_left_out_has_no_window() {
        let apia = Zone::parse("Pacific/Apia").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let days: Vec<String> = Grid::Day
            .windows(&apia, at("2011-12-29T10:00:00Z"), at("2012-01-01T10:00:00Z"))
            .map(|window| apia.wall(window.start().timestamp()).date().to_string())
            .collect();
        assert_eq!(days, ["2011-12-29", "2011-12-31", "2012-01-01"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[0-9]{1,3}[smhdw]") {
            let _ = Grid::parse(&text);
        }

        #[test]
        fn no_instant_makes_it_panic(second in -377_705_023_201_i64..=253_402_207_200) {
            let at = Timestamp::from_second(second).unwrap();
            for grid in ["15m", "day", "week", "month"] {
                let grid = Grid::parse(grid).unwrap();
                let window = grid.window_at(&Zone::parse("Europe/Berlin").unwrap(), at);
                // The cells at both ends of time are cut off.
                let is_inside = (EARLIEST + SignedDuration::from_hours(960)..LATEST - SignedDuration::from_hours(960)).contains(&at);
                prop_assert!(!is_inside || window.is_some_and(|window| window.contains(at)));
            }
        }
    }
}
