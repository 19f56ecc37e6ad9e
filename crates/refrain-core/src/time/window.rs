//! Windows: half-open intervals `[start, end)` of logical time.
//!
//! A window is what a run is *about*, and its start is part of the run's identity. So the ends of a window have a type of
//! their own: a [`LogicalTime`] may become part of a key, an instant of the clock may not.

use std::fmt;

use jiff::Timestamp;

/// No window begins earlier, and no schedule ticks earlier.
pub const EARLIEST: Timestamp = Timestamp::constant(-62_135_510_400, 0);

/// No window ends later, and no schedule ticks later.
pub const LATEST: Timestamp = Timestamp::constant(95_617_584_000, 0);

/// An instant that belongs to a window: it identifies the work, not when it is done.
///
/// It comes from a window or from the name of one. The only way to make one from the clock is to write the time as a name
/// first.
///
/// ```
/// use refrain_core::{Zone, window_name};
///
/// let start = window_name::parse("2026-06-09T14:00", &Zone::parse("Europe/Berlin")?)?;
/// assert_eq!(start.to_string(), "2026-06-09T12:00:00Z");
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalTime(Timestamp);

impl LogicalTime {
    pub(crate) fn new(at: Timestamp) -> Result<LogicalTime, WindowError> {
        if at.subsec_nanosecond() != 0 {
            return Err(WindowError::PartOfASecond(at));
        }
        if !(EARLIEST..=LATEST).contains(&at) {
            return Err(WindowError::OutOfRange(at));
        }
        Ok(LogicalTime(at))
    }

    /// The instant, for comparisons and for binding into queries.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for LogicalTime {
    /// RFC 3339 in UTC with whole seconds: twenty characters whose order as text is the order in time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

/// A half-open interval of logical time, never empty, of whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    start: LogicalTime,
    end: LogicalTime,
}

/// Why two instants do not make a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The end is not after the start.
    #[error("a window from {start} to {end} is empty: its end must lie after its start")]
    Empty {
        /// The given start.
        start: Timestamp,
        /// The given end.
        end: Timestamp,
    },
    /// One of the ends has parts of a second.
    #[error("{0} has parts of a second: windows begin and end at whole seconds")]
    PartOfASecond(Timestamp),
    /// One of the ends lies outside the time that schedules support.
    #[error("{0} lies outside the years 1 to 4999")]
    OutOfRange(Timestamp),
}

impl Window {
    /// An existing window, read back from the store. New ones come from a [`Grid`](crate::Grid): one made from the clock would
    /// make every rerun look like new work.
    pub fn stored(start: Timestamp, end: Timestamp) -> Result<Window, WindowError> {
        if end <= start {
            return Err(WindowError::Empty { start, end });
        }
        Ok(Window { start: LogicalTime::new(start)?, end: LogicalTime::new(end)? })
    }

    /// The first instant that belongs to it.
    pub fn start(self) -> LogicalTime {
        self.start
    }

    /// The first instant after it.
    pub fn end(self) -> LogicalTime {
        self.end
    }

    /// Its real length: a day may have 23 or 25 hours.
    pub fn length(self) -> std::time::Duration {
        self.end.0.duration_since(self.start.0).unsigned_abs()
    }

    /// Whether an instant lies in it.
    pub fn contains(self, at: Timestamp) -> bool {
        self.start.0 <= at && at < self.end.0
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_window_holds_its_start_and_not_its_end() {
        let window = Window::stored(at("2026-06-09T00:00:00Z"), at("2026-06-10T00:00:00Z")).unwrap();
        assert!(window.contains(at("2026-06-09T00:00:00Z")));
        assert!(window.contains(at("2026-06-09T23:59:59.999Z")));
        assert!(!window.contains(at("2026-06-10T00:00:00Z")));
        assert_eq!(window.to_string(), "[2026-06-09T00:00:00Z, 2026-06-10T00:00:00Z)");
    }

    #[test]
    fn an_invalid_window_is_refused_with_a_reason() {
        let noon = at("2026-06-09T12:00:00Z");
        for (start, end, reason) in [
            (noon, noon, "is empty"),
            (noon, at("2026-06-09T11:00:00Z"), "is empty"),
            (noon, at("2026-06-09T13:00:00.5Z"), "parts of a second"),
            (at("0000-12-31T00:00:00Z"), noon, "outside the years"),
            (noon, at("5001-01-01T00:00:00Z"), "outside the years"),
        ] {
            let error = Window::stored(start, end).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
