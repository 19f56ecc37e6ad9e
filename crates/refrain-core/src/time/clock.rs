//! The clock is an input, so that every decision about time can be tested without waiting.
//!
//! Two readings are kept apart. The wall clock names windows and may jump; the monotonic clock measures how
//! long something took and never does. Leases use neither: they live by the database's clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A source of time.
pub trait Clock: Send + Sync {
    /// The wall clock: the time as far as this machine knows. It may jump.
    fn now(&self) -> Timestamp;
    /// The time since some fixed instant. It never goes back; whether it advances while the machine sleeps is up to the
    /// system.
    fn monotonic(&self) -> Duration;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that moves only when a test moves it. Its clones are handles of the same clock.
///
/// ```
/// use refrain_core::clock::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::at("2026-06-09T02:00:00Z".parse()?);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-06-09T02:01:00Z");
///
/// clock.set("2026-06-08T00:00:00Z".parse()?);
/// assert_eq!(clock.monotonic(), Duration::from_secs(60), "the wall clock jumped, the other did not");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    hands: Arc<Mutex<(Timestamp, Duration)>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { hands: Arc::new(Mutex::new((now, Duration::ZERO))) }
    }

    /// Advances both clocks.
    pub fn advance(&self, by: Duration) {
        self.turn(|(wall, monotonic)| {
            (wall.checked_add(by).unwrap_or(Timestamp::MAX), monotonic.saturating_add(by))
        });
    }

    /// Sets the wall clock; the monotonic clock does not change.
    pub fn set(&self, now: Timestamp) {
        self.turn(|(_, monotonic)| (now, monotonic));
    }

    fn turn(&self, turn: impl FnOnce((Timestamp, Duration)) -> (Timestamp, Duration)) {
        let mut hands = self.hands.lock().unwrap_or_else(PoisonError::into_inner);
        *hands = turn(*hands);
    }

    fn read(&self) -> (Timestamp, Duration) {
        *self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.read().0
    }

    fn monotonic(&self) -> Duration {
        self.read().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handle_shows_the_same_time() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let handle = clock.clone();
        clock.advance(Duration::from_secs(5));
        assert_eq!((handle.now().as_second(), handle.monotonic()), (5, Duration::from_secs(5)));
    }

    #[test]
    fn a_clock_that_is_turned_too_far_stops_at_the_end_of_time() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!((clock.now(), clock.monotonic()), (Timestamp::MAX, Duration::MAX));
    }

    #[test]
    fn the_system_clock_goes_on() {
        let clock = SystemClock::new();
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        assert!(clock.monotonic() >= monotonic);
        assert!(wall > Timestamp::UNIX_EPOCH);
    }
}
