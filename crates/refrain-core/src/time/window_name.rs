//! The name of a window: its start.
//!
//! The start is written in the job's zone if that is unambiguous (`2026-06-09`, `2026-06-09T14:00`), else as an instant
//! (`2026-06-09T12:00:00Z`), which always is: when the clock goes back, 02:00 comes twice, and the two windows need two
//! names. Every form is accepted everywhere; a name that means two windows is refused with both of them, rather than
//! guessed.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};

use crate::ParseError;
use crate::grid::Grid;
use crate::window::{LogicalTime, Window};
use crate::zone::Zone;

const WHAT: &str = "window";
const ADVICE: &str =
    "a window is named by its start: 2026-06-09, 2026-06-09T14:00, or 2026-06-09T12:00:00Z as an instant";

/// The shortest name of this window that is unambiguous.
pub fn write(start: LogicalTime, grid: Grid, zone: &Zone) -> String {
    let at = start.timestamp();
    let wall = zone.wall(at);
    let is_calendar = matches!(grid, Grid::Day | Grid::Week | Grid::Month);
    if is_calendar && zone.reaches(wall.date().to_datetime(Time::midnight())) == Some(at) {
        return wall.date().to_string();
    }
    if zone.instants(wall).len() != 1 {
        return start.to_string();
    }
    let pattern = if wall.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" };
    wall.strftime(pattern).to_string()
}

/// The start that a name means in a zone.
///
/// ```
/// use refrain_core::{Zone, window_name};
///
/// let berlin = Zone::parse("Europe/Berlin")?;
/// assert_eq!(window_name::parse("2026-06-09", &berlin)?.to_string(), "2026-06-08T22:00:00Z");
/// let twice = window_name::parse("2026-10-25T02:00", &berlin).unwrap_err();
/// assert_eq!(twice.advice(), Some("write 2026-10-25T00:00:00Z or 2026-10-25T01:00:00Z"));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
pub fn parse(name: &str, zone: &Zone) -> Result<LogicalTime, ParseError> {
    match meanings(name, zone)?.as_slice() {
        [start] => Ok(*start),
        starts => {
            let both: Vec<String> = starts.iter().map(ToString::to_string).collect();
            let error = ParseError::whole(WHAT, name, format!("this time comes twice in {zone}"));
            Err(error.help(format!("write {}", both.join(" or "))))
        }
    }
}

/// All the starts that a name may mean: two for a time that the clock shows twice.
pub(crate) fn meanings(name: &str, zone: &Zone) -> Result<Vec<LogicalTime>, ParseError> {
    let wrong = |reason: &str| ParseError::whole(WHAT, name, reason.to_owned());
    let unreadable = || wrong("it is not a date or a time that exists").help(ADVICE);
    if !name.is_ascii() || name.len() > 32 || name.contains(":60") {
        return Err(wrong("it does not look like the name of a window").help(ADVICE));
    }
    let instants = match name.len() {
        10 => {
            let date: Date = name.parse().map_err(|_| unreadable())?;
            let midnight = zone.reaches(date.to_datetime(Time::midnight())).ok_or_else(unreadable)?;
            if zone.wall(midnight).date() != date {
                return Err(wrong("the zone's calendar skipped this date").help(ADVICE));
            }
            vec![midnight]
        }
        16 | 19 if is_wall_time(name) => {
            let wall: DateTime = name.parse().map_err(|_| unreadable())?;
            let instants = zone.instants(wall);
            if instants.is_empty() {
                let after = zone.reaches(wall).map(|at| zone.wall(at).strftime("%H:%M").to_string());
                let advice = after.map_or(ADVICE.to_owned(), |after| {
                    format!("the clock skips it and continues at {after}")
                });
                return Err(wrong(&format!("this time does not exist in {zone}")).help(advice));
            }
            instants
        }
        _ => vec![name.parse::<Timestamp>().map_err(|_| unreadable())?],
    };
    let starts: Result<Vec<LogicalTime>, _> = instants.into_iter().map(LogicalTime::new).collect();
    starts.map_err(|error| wrong(&error.to_string()).help(ADVICE))
}

/// `2026-06-09T14:00`, optionally with seconds, without an offset: dropping an offset would change the window.
fn is_wall_time(name: &str) -> bool {
    let (date, time) = name.split_at_checked(11).unwrap_or_default();
    date.ends_with('T') && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}

/// A name that means several windows: the clock shows it twice, or the timetable was edited.
pub(crate) fn means_several(name: &str, windows: &[Window]) -> ParseError {
    let starts: Vec<String> = windows.iter().map(|window| window.start().to_string()).collect();
    ParseError::whole(WHAT, name, "it means several windows of this job")
        .help(format!("write {}", starts.join(" or ")))
}

/// The error for a name at which no window of the job begins, with the window that contains that time.
pub(crate) fn not_a_start(name: &str, containing: Option<String>) -> ParseError {
    let error = ParseError::whole(WHAT, name, "no window of this job begins then");
    match containing {
        Some(window) => error.help(format!("it lies in the window {window}")),
        None => error.help(ADVICE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_invalid_name_is_refused_with_a_reason() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for (name, reason) in [
            ("", "not a date or a time"),
            ("yesterday", "not a date or a time"),
            ("2026-02-30", "not a date or a time"),
            ("2026-06-09T25:00", "not a date or a time"),
            ("2026-06-09 14:00", "not a date or a time"),
            ("2026-06-09T12:00:00.5Z", "parts of a second"),
            ("9999-01-01", "outside the years"),
            ("2026-03-29T02:30", "does not exist in Europe/Berlin"),
            ("2026-10-25T02:30", "comes twice in Europe/Berlin"),
            ("９９９９-01-01", "does not look like"),
            ("2026-06-09T23:59:60", "does not look like"),
        ] {
            let error = parse(name, &berlin).unwrap_err();
            assert!(error.reason().contains(reason), "{name}: {error}");
        }
        let apia = Zone::parse("Pacific/Apia").unwrap();
        assert!(parse("2011-12-30", &apia).unwrap_err().reason().contains("skipped this date"));
    }

    #[test]
    fn an_offset_is_never_dropped() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for name in
            ["2026-06-09T14:00+05:00", "2026-06-09T14:00+05", "2026-06-09T14:00:00+05", "2026-06-09T09:00Z"]
        {
            let start = parse(name, &berlin).map(|start| start.to_string());
            assert_eq!(start.as_deref(), Ok("2026-06-09T09:00:00Z"), "{name}");
        }
    }

    #[test]
    fn a_repeated_hour_is_named_by_its_instants() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for (instant, name) in [
            ("2026-10-24T23:00:00Z", "2026-10-25T01:00"),
            ("2026-10-25T00:00:00Z", "2026-10-25T00:00:00Z"),
            ("2026-10-25T01:00:00Z", "2026-10-25T01:00:00Z"),
            ("2026-10-25T02:00:00Z", "2026-10-25T03:00"),
        ] {
            let start = parse(instant, &berlin).unwrap();
            assert_eq!(write(start, Grid::parse("hour").unwrap(), &berlin), name);
        }
    }

    #[test]
    fn a_day_that_begins_at_one_is_still_named_by_its_date() {
        let cairo = Zone::parse("Africa/Cairo").unwrap();
        let start = parse("2026-04-24", &cairo).unwrap();
        assert_eq!(cairo.wall(start.timestamp()).to_string(), "2026-04-24T01:00:00");
        assert_eq!(write(start, Grid::Day, &cairo), "2026-04-24");
        assert_eq!(write(start, Grid::Tick, &cairo), "2026-04-24T01:00");
    }

    proptest! {
        #[test]
        fn no_name_makes_it_panic(name in "\\PC*|[0-9TZ:+.-]{0,25}|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?") {
            for zone in [Zone::utc(), Zone::parse("Europe/Berlin").unwrap()] {
                let _ = parse(&name, &zone);
            }
        }

        #[test]
        fn a_name_leads_back_to_its_window(second in -2_000_000_000_i64..4_000_000_000, zone in 0_usize..500) {
            let zone = Zone::parse(Zone::all().nth(zone).unwrap()).unwrap();
            let at = Timestamp::from_second(second).unwrap();
            for grid in ["hour", "15m", "day", "week", "month"] {
                let grid = Grid::parse(grid).unwrap();
                let start = grid.window_at(&zone, at).unwrap().start();
                let name = write(start, grid, &zone);
                prop_assert_eq!(parse(&name, &zone).unwrap(), start, "{} {} {}", zone, grid, name);
            }
        }
    }
}
