//! What a window is called: its start.
//!
//! In the job's zone where that says it all (`2026-06-09`, `2026-06-09T14:00`), else as an instant
//! (`2026-06-09T12:00:00Z`), which always does: when the clock goes back, 02:00 comes twice, and the two
//! windows need two names. Every form is understood everywhere; a name that means two windows is refused
//! with both of them, rather than guessed.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};

use crate::ParseError;
use crate::grid::Grid;
use crate::window::LogicalTime;
use crate::zone::Zone;

const WHAT: &str = "window";
const ADVICE: &str =
    "a window is called by its start: 2026-06-09, 2026-06-09T14:00, or 2026-06-09T12:00:00Z as an instant";

/// The shortest name that means this window and no other.
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
    let wrong = |reason: &str| ParseError::whole(WHAT, name, reason.to_owned());
    let unreadable = || wrong("it is not a date or a time that exists").help(ADVICE);
    if !name.is_ascii() || name.len() > 32 {
        return Err(wrong("it does not look like the name of a window").help(ADVICE));
    }
    let at = match name.len() {
        10 => {
            let date: Date = name.parse().map_err(|_| unreadable())?;
            let midnight = zone.reaches(date.to_datetime(Time::midnight())).ok_or_else(unreadable)?;
            if zone.wall(midnight).date() != date {
                return Err(wrong("the zone's calendar left this date out").help(ADVICE));
            }
            midnight
        }
        16 | 19 if !name.ends_with('Z') && name.as_bytes().get(10) == Some(&b'T') => {
            let wall: DateTime = name.parse().map_err(|_| unreadable())?;
            only(name, zone, wall)?
        }
        _ => name.parse::<Timestamp>().map_err(|_| unreadable())?,
    };
    let is_named = at.subsec_nanosecond() == 0 && Zone::utc().wall(at).year() >= 1;
    is_named.then(|| LogicalTime::new(at)).ok_or_else(unreadable)
}

fn only(name: &str, zone: &Zone, wall: DateTime) -> Result<Timestamp, ParseError> {
    let wrong = |reason: String| ParseError::whole(WHAT, name, reason);
    match zone.instants(wall).as_slice() {
        [at] => Ok(*at),
        [] => {
            let after = zone.reaches(wall).map(|at| zone.wall(at).strftime("%H:%M").to_string());
            let advice =
                after.map_or(ADVICE.to_owned(), |after| format!("the clock jumps over it to {after}"));
            Err(wrong(format!("this time does not exist in {zone}")).help(advice))
        }
        instants => {
            let both: Vec<String> = instants.iter().map(ToString::to_string).collect();
            Err(wrong(format!("this time comes twice in {zone}"))
                .help(format!("write {}", both.join(" or "))))
        }
    }
}

/// A name that no window of the job has, answered with the window that contains that time.
pub(crate) fn not_a_start(name: &str, containing: Option<String>) -> ParseError {
    let error = ParseError::whole(WHAT, name, "no window of this job begins then");
    match containing {
        Some(window) => error.help(format!("it lies in the window {window}")),
        None => error.help(ADVICE),
    }
}
