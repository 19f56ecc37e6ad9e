//! Notices that the wall clock jumped, by comparing it with the monotonic one.
//!
//! *Back*: nothing is due twice, because a schedule remembers how far it got and simply waits until the clock is there again.
//! *Forward*, by more than an hour: a schedule would open windows that have not happened yet, so it is held, and an alarm
//! is raised, until the clock has shown its new time for five minutes. A wrong answer from a time server is corrected
//! before that; a laptop that slept continues after it.
//!
//! A hold ends by the clock alone. Waiting for an operator would stop every schedule whenever a lid is closed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// How far the clock may jump forward before schedules are held. Daylight saving never moves it.
pub const LONGEST_STEP: Duration = Duration::from_hours(1);

/// How long the clock must show its new time before it is believed.
pub const BELIEVED_AFTER: Duration = Duration::from_mins(5);

/// How far the two clocks may drift apart between two readings without a jump.
pub const DRIFT: Duration = Duration::from_secs(1);

/// Both clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock.
    pub wall: Timestamp,
    /// The monotonic clock.
    pub monotonic: Duration,
}

impl ClockReading {
    /// Reads both clocks.
    pub fn of(clock: &(impl Clock + ?Sized)) -> Self {
        Self { wall: clock.now(), monotonic: clock.monotonic() }
    }

    /// The wall clock at monotonic zero: constant as long as the wall clock does not jump.
    fn base(&self) -> SignedDuration {
        self.wall.as_duration().saturating_sub(signed(self.monotonic))
    }
}

/// The result of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockVerdict {
    /// Nothing happened.
    Steady,
    /// The clock jumped back by this much. Schedules go on: what was due is not due again.
    JumpedBack(Duration),
    /// The clock jumped forward by this much. Hold schedules and raise the alarm.
    JumpedForward(Duration),
    /// The clock shows its new time. Hold schedules for this much longer.
    Holding(Duration),
}

impl ClockVerdict {
    /// Whether no schedule may open a window.
    pub fn holds_schedules(self) -> bool {
        matches!(self, Self::JumpedForward(_) | Self::Holding(_))
    }
}

/// The state between two readings.
///
/// ```
/// use refrain_core::clock::ManualClock;
/// use refrain_core::clock_watch::{BELIEVED_AFTER, ClockWatch, ClockReading, ClockVerdict};
/// use std::time::Duration;
///
/// let clock = ManualClock::at("2026-06-09T22:00:00Z".parse()?);
/// let watch = ClockWatch::from(ClockReading::of(&clock));
///
/// clock.set("2026-06-10T06:00:00Z".parse()?);
/// let (watch, verdict) = watch.observe(ClockReading::of(&clock));
/// assert_eq!(verdict, ClockVerdict::JumpedForward(Duration::from_hours(8)));
///
/// clock.advance(BELIEVED_AFTER);
/// assert_eq!(watch.observe(ClockReading::of(&clock)).1, ClockVerdict::Steady, "it was the lid, not the time server");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockWatch {
    believed: SignedDuration,
    doubted: Option<Doubted>,
}

/// A new time that is not believed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubted {
    base: SignedDuration,
    since: Duration,
}

impl From<ClockReading> for ClockWatch {
    /// The first reading is believed: there is nothing to compare it with.
    fn from(reading: ClockReading) -> Self {
        Self { believed: reading.base(), doubted: None }
    }
}

impl ClockWatch {
    /// Takes a reading; the result observes the next one.
    #[must_use]
    pub fn observe(self, reading: ClockReading) -> (Self, ClockVerdict) {
        let step = reading.base().saturating_sub(self.believed);
        if step <= signed(LONGEST_STEP) {
            let back = if step <= -signed(DRIFT) {
                ClockVerdict::JumpedBack(step.unsigned_abs())
            } else {
                ClockVerdict::Steady
            };
            return (Self::from(reading), back);
        }
        let stands = self.doubted.filter(|doubted| near(doubted.base, reading.base()));
        let Some(doubted) = stands else {
            let doubted = Doubted { base: reading.base(), since: reading.monotonic };
            return (
                Self { doubted: Some(doubted), ..self },
                ClockVerdict::JumpedForward(step.unsigned_abs()),
            );
        };
        let stood = reading.monotonic.saturating_sub(doubted.since);
        match BELIEVED_AFTER.saturating_sub(stood) {
            Duration::ZERO => (Self::from(reading), ClockVerdict::Steady),
            // The base follows, so that a clock that is slewed for minutes still counts as steady.
            left => {
                let doubted = Doubted { base: reading.base(), ..doubted };
                (Self { doubted: Some(doubted), ..self }, ClockVerdict::Holding(left))
            }
        }
    }
}

/// How far two clocks that should agree are apart, if it is too far for schedules to believe either: a process that has
/// just started has no earlier reading to compare with, only the clocks of its database and its machine.
///
/// ```
/// use refrain_core::clock_watch::apart;
///
/// let machine = "2026-06-09T12:00:00Z".parse()?;
/// assert_eq!(apart("2026-06-09T12:59:59Z".parse()?, machine), None);
/// assert!(apart("2027-06-09T12:00:00Z".parse()?, machine).is_some());
/// assert!(apart("2026-06-09T10:30:00Z".parse()?, machine).is_some());
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn apart(one: Timestamp, other: Timestamp) -> Option<Duration> {
    let apart = one.duration_since(other).unsigned_abs();
    (apart > LONGEST_STEP).then_some(apart)
}

fn near(one: SignedDuration, other: SignedDuration) -> bool {
    one.saturating_sub(other).unsigned_abs() < DRIFT
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::{CatchUp, Dst, Grid, Revisions, Schedule, Timetable, Zone};
    use proptest::prelude::*;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    /// A clock, its watch, and an hourly timetable with the hours that it opened.
    struct House {
        clock: ManualClock,
        watch: ClockWatch,
        hourly: Revisions,
        covered: Option<Timestamp>,
        opened: Vec<Timestamp>,
    }

    impl House {
        fn new() -> Self {
            let clock = ManualClock::at("2026-06-09T12:30:00Z".parse().unwrap());
            let watch = ClockWatch::from(ClockReading::of(&clock));
            let hourly = Timetable {
                schedule: Schedule::parse("every 1h").unwrap(),
                zone: Zone::utc(),
                grid: Grid::Tick,
                dst: Dst::default(),
                start: None,
            };
            let hourly = Revisions::first(hourly, clock.now()).unwrap();
            Self { clock, watch, hourly, covered: None, opened: Vec::new() }
        }

        fn jump(&self, seconds: i64) {
            self.clock.set(self.clock.now() + SignedDuration::from_secs(seconds));
        }

        /// Advances time, takes a reading, and opens what is due unless the schedule is held.
        fn pass(&mut self, seconds: u64) -> ClockVerdict {
            self.clock.advance(Duration::from_secs(seconds));
            let (watch, verdict) = self.watch.observe(ClockReading::of(&self.clock));
            self.watch = watch;
            if !verdict.holds_schedules() {
                let pass =
                    self.hourly.current().pass(self.covered, CatchUp::All, self.clock.now(), usize::MAX);
                self.opened.extend(pass.rows.iter().map(|(due, _)| due.window.end().timestamp()));
                self.covered = pass.covered;
            }
            verdict
        }
    }

    #[test]
    fn f13_a_clock_that_goes_back_is_reported_and_holds_nothing() {
        for (seconds, expected) in [
            (0, ClockVerdict::Steady),
            (-1, ClockVerdict::JumpedBack(Duration::from_secs(1))),
            (-HOUR, ClockVerdict::JumpedBack(Duration::from_hours(1))),
            (-400 * DAY, ClockVerdict::JumpedBack(Duration::from_hours(9600))),
        ] {
            let mut house = House::new();
            house.jump(seconds);
            assert_eq!(house.pass(10), expected);
            assert!(!expected.holds_schedules());
            assert_eq!(house.pass(10), ClockVerdict::Steady, "it is reported once");
            assert!(house.opened.is_empty(), "nothing is due twice");
        }
    }

    #[test]
    fn f14_a_clock_that_goes_forward_by_more_than_an_hour_holds_schedules() {
        for (seconds, held) in [(1, false), (HOUR, false), (HOUR + 1, true), (400 * DAY, true)] {
            let mut house = House::new();
            house.jump(seconds);
            let verdict = house.pass(10);
            assert_eq!(verdict.holds_schedules(), held, "{seconds}");
            if held {
                assert_eq!(verdict, ClockVerdict::JumpedForward(Duration::from_secs(seconds.unsigned_abs())));
            }
        }
    }

    #[test]
    fn f14_a_bad_time_server_is_corrected_before_anything_runs() {
        let mut house = House::new();
        house.jump(30 * DAY);
        assert_eq!(house.pass(10), ClockVerdict::JumpedForward(Duration::from_hours(720)));
        assert_eq!(house.pass(200), ClockVerdict::Holding(Duration::from_secs(100)));
        house.jump(-30 * DAY);
        assert_eq!(house.pass(10), ClockVerdict::Steady);
        assert!(house.opened.is_empty());
    }

    #[test]
    fn f14_a_laptop_that_slept_continues_after_five_minutes() {
        let mut house = House::new();
        house.jump(8 * HOUR);
        assert!(house.pass(0).holds_schedules());
        assert_eq!(house.pass(299), ClockVerdict::Holding(Duration::from_secs(1)));
        assert!(house.opened.is_empty());
        assert_eq!(house.pass(1), ClockVerdict::Steady);
        assert_eq!(house.opened.len(), 8, "the hours of the night");
        house.jump(-60);
        assert_eq!(
            house.pass(10),
            ClockVerdict::JumpedBack(Duration::from_mins(1)),
            "the new time is believed"
        );
    }

    #[test]
    fn f14_a_clock_that_keeps_jumping_is_not_believed_and_one_that_is_slewed_is() {
        let mut restless = House::new();
        for _ in 0..100 {
            restless.jump(2 * HOUR);
            assert!(matches!(restless.pass(200), ClockVerdict::JumpedForward(_)));
        }
        let mut slewed = House::new();
        slewed.jump(2 * HOUR);
        slewed.pass(0);
        for _ in 0..30 {
            let wall = slewed.clock.now() + SignedDuration::from_millis(100);
            slewed.clock.set(wall);
            slewed.pass(10);
        }
        assert_eq!(slewed.pass(0), ClockVerdict::Steady);
    }

    #[test]
    fn readings_at_the_ends_of_time_can_be_compared() {
        let ends = [(Timestamp::MIN, Duration::MAX), (Timestamp::MAX, Duration::ZERO)];
        let [early, late] = ends.map(|(wall, monotonic)| ClockReading { wall, monotonic });
        assert!(ClockWatch::from(early).observe(late).1.holds_schedules());
        assert!(matches!(ClockWatch::from(late).observe(early).1, ClockVerdict::JumpedBack(_)));
    }

    /// How far the wall clock jumps, either way, and for how many seconds it stays there.
    fn jumps(stays: std::ops::Range<u64>) -> impl Strategy<Value = Vec<(i64, u64)>> {
        let jump = (1..=400 * DAY, prop::bool::ANY).prop_map(|(far, back)| if back { -far } else { far });
        prop::collection::vec((jump, stays), 1000)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5))]

        #[test]
        fn f13_a_thousand_jumps_repeat_no_hour_and_hold_nothing_for_ever(jumps in jumps(0..600)) {
            let mut house = House::new();
            for (seconds, stays) in jumps {
                house.jump(seconds);
                house.pass(stays);
            }
            prop_assert!(house.opened.is_sorted_by(|one, next| one < next), "an hour was due twice");
            for _ in 0..31 {
                house.pass(10);
            }
            prop_assert_eq!(house.pass(10), ClockVerdict::Steady);
        }

        #[test]
        fn f14_a_thousand_wrong_times_that_are_corrected_open_no_hour_of_the_future(jumps in jumps(0..300)) {
            let mut house = House::new();
            let begin = house.clock.now();
            for (seconds, stays) in jumps {
                house.jump(seconds);
                house.pass(0);
                house.pass(stays);
                house.jump(-seconds);
                house.pass(0);
                let truth = begin + SignedDuration::try_from(house.clock.monotonic()).unwrap();
                let latest = truth + signed(LONGEST_STEP);
                prop_assert!(house.covered <= Some(latest), "hours of the future are opened at {}", truth);
            }
        }
    }
}
