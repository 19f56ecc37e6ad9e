//! The instants at which a schedule ticks in a zone, forwards and backwards.

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::cron::CronPattern;
use super::{Dst, Fold, Gap, Kind, Schedule};
use crate::window::{EARLIEST, LATEST};
use crate::zone::{Jump, Stretch, Zone, second_before, whole_second};

/// The ticks of a schedule in a zone: strictly increasing instants of whole seconds.
#[derive(Debug, Clone, Copy)]
pub struct Ticks<'s> {
    schedule: &'s Schedule,
    zone: &'s Zone,
    dst: Dst,
    anchor: Timestamp,
}

impl<'s> Ticks<'s> {
    pub(super) fn new(schedule: &'s Schedule, zone: &'s Zone, dst: Dst) -> Ticks<'s> {
        Ticks { schedule, zone, dst, anchor: Timestamp::UNIX_EPOCH }
    }

    /// Counts an `every` from this instant. Cron patterns have no origin.
    #[must_use]
    pub fn counted_from(mut self, anchor: Timestamp) -> Ticks<'s> {
        self.anchor = anchor;
        self
    }

    /// The first tick after `at`.
    ///
    /// # Panics
    ///
    /// If the tick does not lie after `at`. That cannot happen; if it did, stopping would be better than opening a window
    /// twice or never.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let from = at.max(second_before(EARLIEST));
        let tick = match &self.schedule.kind {
            Kind::Every(every) => self.counted(from, i64::try_from(every.as_secs()).ok()?, 1),
            Kind::Cron(pattern) => self.cron(pattern).after(from),
        };
        let tick = tick.filter(|tick| *tick <= LATEST);
        assert!(
            tick.is_none_or(|tick| tick > at),
            "{} ticks at {tick:?}, which is not after {at}",
            self.schedule
        );
        tick
    }

    /// The last tick that is not after `at`.
    ///
    /// # Panics
    ///
    /// If the tick lies after `at`, which cannot happen either.
    pub fn at_or_before(&self, at: Timestamp) -> Option<Timestamp> {
        if at < EARLIEST {
            return None;
        }
        let from = at.min(LATEST);
        let tick = match &self.schedule.kind {
            Kind::Every(every) => self.counted(from, i64::try_from(every.as_secs()).ok()?, 0),
            Kind::Cron(pattern) => self.cron(pattern).at_or_before(from),
        };
        let tick = tick.filter(|tick| *tick >= EARLIEST);
        assert!(
            tick.is_none_or(|tick| tick <= at),
            "{} ticks at {tick:?}, which is after {at}",
            self.schedule
        );
        tick
    }

    /// The ticks after `after` and not after `until`, in order.
    pub fn between(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.after(after), |tick| self.after(*tick))
            .take_while(move |tick| *tick <= until)
    }

    fn counted(&self, at: Timestamp, every: i64, further: i64) -> Option<Timestamp> {
        let (at, anchor) = (whole_second(at).as_second(), whole_second(self.anchor).as_second());
        let count = at.checked_sub(anchor)?.checked_div_euclid(every)?.checked_add(further)?;
        Timestamp::from_second(anchor.checked_add(count.checked_mul(every)?)?).ok()
    }

    fn cron(&self, pattern: &'s CronPattern) -> CronTicks<'s> {
        // An interval follows real time: it ticks through both passes of a fold and never in a gap.
        let dst = if pattern.is_fixed() { self.dst } else { Dst { gap: Gap::Skip, fold: Fold::Both } };
        CronTicks { pattern, zone: self.zone, dst }
    }
}

struct CronTicks<'s> {
    pattern: &'s CronPattern,
    zone: &'s Zone,
    dst: Dst,
}

impl CronTicks<'_> {
    fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let mut stretch = self.zone.stretch(at);
        let mut wall = self.pattern.after(self.zone.wall(at))?;
        loop {
            let tick = stretch.instant(wall)?;
            match stretch.until {
                Some(jump) if jump.at <= tick => {
                    if self.catches(&jump) {
                        return Some(jump.at);
                    }
                    stretch = self.zone.stretch(jump.at);
                    wall = self.pattern.at_or_after(jump.wall_after())?;
                }
                _ if self.wants(&stretch, wall) => return Some(tick),
                _ => wall = self.pattern.after(wall)?,
            }
        }
    }

    fn at_or_before(&self, at: Timestamp) -> Option<Timestamp> {
        let mut stretch = self.zone.stretch(at);
        let mut wall = self.pattern.at_or_before(self.zone.wall(at))?;
        loop {
            let tick = stretch.instant(wall)?;
            match stretch.from {
                Some(jump) if tick < jump.at => {
                    if self.catches(&jump) {
                        return Some(jump.at);
                    }
                    stretch = self.zone.stretch(second_before(jump.at));
                    wall = self.pattern.before(jump.wall_before())?;
                }
                _ if self.wants(&stretch, wall) => return Some(tick),
                _ => wall = self.pattern.before(wall)?,
            }
        }
    }

    /// Whether the jump itself is a tick, because the clock jumps over a time of the pattern.
    fn catches(&self, jump: &Jump) -> bool {
        self.dst.gap == Gap::Next
            && self.pattern.at_or_after(jump.wall_before()).is_some_and(|wall| jump.jumps_over(wall))
    }

    /// Whether a match in this stretch ticks: the rule may want only one of two passes.
    fn wants(&self, stretch: &Stretch, wall: DateTime) -> bool {
        let comes_again = stretch.until.is_some_and(|jump| jump.repeats(wall));
        let came_before = stretch.from.is_some_and(|jump| jump.repeats(wall));
        match self.dst.fold {
            Fold::First => !came_before,
            Fold::Last => !comes_again,
            Fold::Both => true,
        }
    }
}
