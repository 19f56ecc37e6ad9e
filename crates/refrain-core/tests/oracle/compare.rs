//! Compares the code under test with the oracle.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use refrain_core::{Dst, Fold as DstFold, Gap as DstGap, Grid, Schedule, Zone};

use crate::clock::{Clock, Period};
use crate::day::Day;
use crate::groups::{Group, around, groups, in_parallel, is_full, odd_groups};
use crate::pattern::{PATTERNS, Pattern};
use crate::report::{Report, sparse_instants, sweep};
use crate::ticks::{Fold, Found, Gap, POLICIES};
use crate::windows::{GRIDS, beginnings};

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn dst((gap, fold): (Gap, Fold)) -> Dst {
    let gap = match gap {
        Gap::Next => DstGap::Next,
        Gap::Skip => DstGap::Skip,
    };
    let fold = match fold {
        Fold::First => DstFold::First,
        Fold::Last => DstFold::Last,
        Fold::Both => DstFold::Both,
    };
    Dst { gap, fold }
}

/// The ticks of a day according to the code under test.
pub(crate) fn ticks_on(day: &Day, pattern: &str, policy: (Gap, Fold)) -> Vec<i64> {
    let (schedule, zone) = (Schedule::parse(pattern).unwrap(), Zone::parse(day.zone).unwrap());
    let ticks = schedule.ticks(&zone, dst(policy));
    let first = ticks.after(instant(day.from) - NANOSECOND);
    let following = std::iter::successors(first, |tick| ticks.after(*tick));
    following.map(Timestamp::as_second).take_while(|tick| *tick < day.until).collect()
}

/// The beginnings of windows on a day according to the code under test: the ends of the windows before.
pub(crate) fn beginnings_on(day: &Day, grid: &str) -> Vec<i64> {
    let (grid, zone) = (Grid::parse(grid).unwrap(), Zone::parse(day.zone).unwrap());
    let windows = grid.windows(&zone, instant(day.from) - NANOSECOND, instant(day.until) - NANOSECOND);
    windows.map(|window| window.end().timestamp().as_second()).collect()
}

#[derive(Clone, Copy, Debug)]
enum Question {
    After,
    AtOrBefore,
}

/// One pattern in one zone under one policy, and the ticks that it must have.
struct Ticks<'a> {
    name: &'a str,
    clock: &'a Clock,
    pattern: &'a Pattern,
    policy: (Gap, Fold),
    expected: &'a [i64],
    schedule: &'a Schedule,
    zone: &'a Zone,
}

impl Ticks<'_> {
    fn check(&self, report: &Report) -> Result<(), String> {
        if is_full() {
            let Period { from, until } = self.clock.period;
            self.walk((from * 60, until * 60), report)?;
        }
        for span in around(&self.clock.changes, 2) {
            self.walk(span, report)?;
        }
        for span in around(&self.clock.changes, 1) {
            self.look_back(span, report)?;
        }
        for change in &self.clock.changes {
            for minute in (change.at - 2 * 60..change.at + 2 * 60).step_by(15) {
                self.look_around(minute * 60, report)?;
            }
        }
        sparse_instants(self.clock.period).try_for_each(|at| self.look_around(at, report))
    }

    /// Walks from tick to tick.
    fn walk(&self, (from, until): (i64, i64), report: &Report) -> Result<(), String> {
        let ticks = self.schedule.ticks(self.zone, dst(self.policy));
        let mut at = from;
        let mut index = self.expected.partition_point(|tick| *tick <= at);
        loop {
            let expected = self.expected.get(index).copied();
            self.agree(Question::After, instant(at), expected, ticks.after(instant(at)))?;
            report.compared(1);
            match expected {
                Some(next) if next < until => at = next,
                _ => return Ok(()),
            }
            index += 1;
        }
    }

    /// Looks back from each tick, from a nanosecond before it and from a nanosecond after it.
    fn look_back(&self, (from, until): (i64, i64), report: &Report) -> Result<(), String> {
        let ticks = self.schedule.ticks(self.zone, dst(self.policy));
        let first = self.expected.partition_point(|tick| *tick < from);
        let after_last = self.expected.partition_point(|tick| *tick < until);
        for index in first..after_last {
            let tick = self.expected[index];
            let previous = index.checked_sub(1).map(|previous| self.expected[previous]);
            let (before, at, after) = (instant(tick) - NANOSECOND, instant(tick), instant(tick) + NANOSECOND);
            self.agree(Question::AtOrBefore, before, previous, ticks.at_or_before(before))?;
            self.agree(Question::AtOrBefore, at, Some(tick), ticks.at_or_before(at))?;
            self.agree(Question::AtOrBefore, after, Some(tick), ticks.at_or_before(after))?;
            self.agree(Question::After, before, Some(tick), ticks.after(before))?;
            report.compared(4);
        }
        Ok(())
    }

    /// Looks forward and back from one instant, which need not be near a tick.
    fn look_around(&self, at: i64, report: &Report) -> Result<(), String> {
        let ticks = self.schedule.ticks(self.zone, dst(self.policy));
        let next = self.expected.partition_point(|tick| *tick <= at);
        let previous = next.checked_sub(1).map(|previous| self.expected[previous]);
        let at = instant(at);
        self.agree(Question::After, at, self.expected.get(next).copied(), ticks.after(at))?;
        self.agree(Question::AtOrBefore, at, previous, ticks.at_or_before(at))?;
        report.compared(2);
        Ok(())
    }

    /// Where the oracle's period holds no such tick, the one found must lie beyond it, or not exist.
    fn agree(
        &self,
        question: Question,
        at: Timestamp,
        expected: Option<i64>,
        found: Option<Timestamp>,
    ) -> Result<(), String> {
        let Period { from, until } = self.clock.period;
        let agrees = match (expected, found) {
            (Some(expected), Some(found)) => instant(expected) == found,
            (None, Some(found)) => match question {
                Question::After => found >= instant(until * 60),
                Question::AtOrBefore => found < instant(from * 60),
            },
            (Some(_), None) => false,
            (None, None) => true,
        };
        if agrees { Ok(()) } else { Err(self.disagreement(question, at, expected, found)) }
    }

    fn disagreement(
        &self,
        question: Question,
        at: Timestamp,
        expected: Option<i64>,
        found: Option<Timestamp>,
    ) -> String {
        let clock = self.clock;
        let expected =
            expected.map_or("none in the period".to_owned(), |second| written(clock, instant(second)));
        let found = found.map_or("none".to_owned(), |found| written(clock, found));
        let near = self.expected.partition_point(|tick| *tick < at.as_second());
        let around: Vec<_> = self.expected[near.saturating_sub(3)..(near + 4).min(self.expected.len())]
            .iter()
            .map(|tick| clock.write(*tick))
            .collect();
        format!(
            "{}  `{}`  gap={:?} fold={:?}\n  asked     {question:?} {}\n  expected  {expected}\n  found     {found}\n  \
             changes   {}\n  ticks     {}",
            self.name,
            self.pattern.text,
            self.policy.0,
            self.policy.1,
            written(clock, at),
            clock.changes_near(at.as_second()),
            around.join(", "),
        )
    }
}

fn written(clock: &Clock, at: Timestamp) -> String {
    format!("{at} ({})", clock.write(at.as_second()))
}

/// One grid in one zone, and the instants at which its windows must begin.
struct Windows<'a> {
    name: &'a str,
    clock: &'a Clock,
    text: &'static str,
    begin: &'a [i64],
    grid: &'a Grid,
    zone: &'a Zone,
}

impl Windows<'_> {
    /// Demands exactly the windows that end after `after` and not after `until`, each where the last one ended.
    fn between(&self, after: Timestamp, until: Timestamp, report: &Report) -> Result<(), String> {
        let start = self.begin.partition_point(|end| instant(*end) <= after).saturating_sub(1);
        let pairs = self.begin[start..].windows(2).map(|pair| (instant(pair[0]), instant(pair[1])));
        let mut expected = pairs.take_while(|(_, end)| *end <= until);
        let found = self.grid.windows(self.zone, after, until);
        let mut found = found.map(|window| (window.start().timestamp(), window.end().timestamp()));
        loop {
            let (expected, found) = (expected.next(), found.next());
            if expected != found {
                return Err(self.disagreement((after, until), expected, found));
            }
            report.compared(1);
            if expected.is_none() {
                return Ok(());
            }
        }
    }

    /// A window belongs to the period that contains its end: `after` is excluded, `until` is included.
    fn at_the_edges(&self, (from, until): (i64, i64), report: &Report) -> Result<(), String> {
        let first = self.begin.partition_point(|end| *end <= from.max(self.begin[0]));
        let after_last = self.begin.partition_point(|end| *end < until);
        for end in &self.begin[first..after_last.max(first)] {
            let end = instant(*end);
            self.between(end - NANOSECOND, end, report)?;
            self.between(end, end, report)?;
            self.between(end, end + NANOSECOND, report)?;
        }
        Ok(())
    }

    fn check(&self, report: &Report) -> Result<(), String> {
        let Some((first, last)) = self.begin.first().zip(self.begin.last()) else {
            return Ok(());
        };
        let is_short = self.begin.len() < 1_000;
        if is_full() || is_short {
            self.between(instant(*first), instant(*last), report)?;
        }
        for (from, until) in around(&self.clock.changes, 2) {
            self.between(instant(from.max(*first)), instant(until), report)?;
        }
        for change in &self.clock.changes {
            self.at_the_edges(((change.at - 6 * 60) * 60, (change.at + 6 * 60) * 60), report)?;
        }
        for at in sparse_instants(self.clock.period).filter(|at| at > first) {
            self.between(instant(at), instant((at + 40 * 60 * 60).min(*last)), report)?;
        }
        Ok(())
    }

    fn disagreement(
        &self,
        (after, until): (Timestamp, Timestamp),
        expected: Option<(Timestamp, Timestamp)>,
        found: Option<(Timestamp, Timestamp)>,
    ) -> String {
        let clock = self.clock;
        let write = |window: Option<(Timestamp, Timestamp)>| {
            window.map_or("none".to_owned(), |(start, end)| {
                format!("{} to {}", written(clock, start), written(clock, end))
            })
        };
        let at = expected.or(found).map_or(after, |(start, _)| start);
        let (after, until) = (written(clock, after), written(clock, until));
        format!(
            "{}  {} windows\n  asked     ending after {after} up to {until}\n  expected  {}\n  found     {}\n  changes   {}",
            self.name,
            self.text,
            write(expected),
            write(found),
            clock.changes_near(at.as_second()),
        )
    }
}

/// Every zone in the full sweep, else one of each group with the same clock.
fn names(group: &Group) -> &[String] {
    if is_full() { &group.names } else { &group.names[..1] }
}

#[test]
fn i16_the_ticks_of_every_zone_agree_with_the_clock_on_the_wall() {
    let schedules: Vec<_> = PATTERNS.iter().map(|pattern| Schedule::parse(pattern.text).unwrap()).collect();
    let report = Report::default();
    for groups in [groups(), &odd_groups()] {
        sweep(groups, &report, |group, clock, matches| {
            let matched = Found::on(clock, matches);
            let zones: Vec<_> = names(group).iter().map(|name| (name, Zone::parse(name).unwrap())).collect();
            for (index, (pattern, schedule)) in PATTERNS.iter().zip(&schedules).enumerate() {
                for policy in POLICIES {
                    let expected = matched.ticks(index, policy);
                    for (name, zone) in &zones {
                        let expected = &expected;
                        let ticks = Ticks { name, clock, pattern, policy, expected, schedule, zone };
                        ticks.check(&report).unwrap_or_else(|text| report.disagree(pattern.text, text));
                    }
                }
            }
        });
    }
    report.conclude(1_000_000);
}

#[test]
fn h2_the_windows_of_every_zone_agree_with_the_clock_on_the_wall() {
    let report = Report::default();
    for groups in [groups(), &odd_groups()] {
        sweep(groups, &report, |group, clock, _| {
            for (text, cells) in GRIDS {
                let grid = Grid::parse(text).unwrap();
                let begin: Vec<_> = beginnings(clock, cells).into_iter().map(|minute| minute * 60).collect();
                for name in names(group) {
                    let zone = &Zone::parse(name).unwrap();
                    let windows = Windows { name, clock, text, begin: &begin, grid: &grid, zone };
                    windows.check(&report).unwrap_or_else(|found| report.disagree(text, found));
                }
            }
        });
    }
    report.conclude(500_000);
}

#[test]
fn i16_ticks_strictly_increase_under_every_name_of_a_zone() {
    let schedule = Schedule::parse("0,30 0-3 * * *").unwrap();
    let report = Report::default();
    let known: BTreeSet<_> = Zone::all().collect();
    in_parallel(groups(), |group| {
        for name in &group.names {
            assert!(known.contains(name.as_str()), "{name} is bundled, yet not among all zones");
            let zone = Zone::parse(name).unwrap();
            let ticks = schedule.ticks(&zone, dst((Gap::Next, Fold::Both)));
            for (from, until) in around(&group.changes, 2) {
                let mut at = instant(from);
                while at < instant(until) {
                    let next = ticks.after(at).unwrap();
                    assert!(next > at, "{name}: {at} is followed by {next}");
                    assert_eq!(ticks.at_or_before(next), Some(next), "{name}");
                    report.compared(1);
                    at = next;
                }
            }
        }
    });
    report.conclude(10_000);
}
