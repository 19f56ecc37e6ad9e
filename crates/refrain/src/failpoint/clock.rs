//! The clock of schedules as a test has set it: it runs faster, and stops in the end.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const CLOCK: &str = "REFRAIN_TEST_CLOCK";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    from: Timestamp,
    origin: Timestamp,
    pace: u32,
    until: Timestamp,
}

impl Clock {
    fn read(text: &str) -> Option<Clock> {
        let mut words = text.split_whitespace();
        let clock = Clock {
            from: words.next()?.parse().ok()?,
            origin: words.next()?.parse().ok()?,
            pace: words.next()?.parse().ok()?,
            until: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(clock)
    }

    fn at(self, now: Timestamp) -> Timestamp {
        let passed = now.duration_since(self.from).max(SignedDuration::ZERO);
        let pace = i32::try_from(self.pace).unwrap_or(i32::MAX);
        let shown = passed.checked_mul(pace).and_then(|passed| self.origin.checked_add(passed).ok());
        shown.map_or(self.until, |shown| shown.min(self.until))
    }
}

#[expect(clippy::expect_used, reason = "a clock that runs otherwise than its test expects proves nothing")]
fn clock() -> Option<Clock> {
    static SET: OnceLock<Option<Clock>> = OnceLock::new();
    let read = || std::env::var(CLOCK).ok().map(|text| Clock::read(&text).expect(CLOCK));
    *SET.get_or_init(read)
}

pub(super) fn schedules(now: Timestamp) -> Timestamp {
    clock().map_or(now, |clock| clock.at(now))
}

pub(super) fn wait(length: Duration) -> Duration {
    clock().map_or(length, |clock| length.checked_div(clock.pace).unwrap_or(length))
}

pub(super) fn is_set() -> bool {
    clock().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_at_its_pace_and_stops_at_its_end() {
        let text = "2026-11-15T10:00:00Z 2026-03-28T00:00:00Z 3600 2026-03-29T00:00:00Z";
        let clock = Clock::read(text).unwrap();
        for (now, shown) in [
            ("2026-11-15T09:59:00Z", "2026-03-28T00:00:00Z"),
            ("2026-11-15T10:00:00Z", "2026-03-28T00:00:00Z"),
            ("2026-11-15T10:00:01.5Z", "2026-03-28T01:30:00Z"),
            ("2026-11-15T10:00:24Z", "2026-03-29T00:00:00Z"),
            ("2026-11-16T10:00:00Z", "2026-03-29T00:00:00Z"),
        ] {
            assert_eq!(clock.at(now.parse().unwrap()), shown.parse().unwrap(), "{now}");
        }
        for wrong in ["", "2026-11-15T10:00:00Z", &format!("{text} 1"), &text.replace("3600", "fast")] {
            assert_eq!(Clock::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_clock_that_is_not_set_is_the_real_one() {
        let now = "2026-11-15T09:59:00Z".parse().unwrap();
        assert_eq!((schedules(now), is_set()), (now, false));
        assert_eq!(wait(Duration::from_secs(9)), Duration::from_secs(9));
    }
}
