//! When a job ticks: a cron pattern or a fixed interval, in a zone.
//!
//! A schedule only says *when to look*; which windows a tick opens is decided by the tick rule
//! ([`tick`](crate::tick)). The meaning of a pattern on a calendar without jumps is one question; what happens at a jump is
//! another, decided by walking the stretches of steady time in the zone:
//!
//! - A pattern is an **interval** when its second, minute or hour contains a `*`: it ticks whenever the clock
//!   shows a match, so it goes on every real hour through a fold and has nothing to do in a gap.
//! - Any other pattern is **fixed**: it names times of day. A time that falls into a gap ticks once when the
//!   clock jumps, however many of its times were swallowed (`gap = "next"`), or not at all (`"skip"`); one
//!   that happens twice ticks the first time, the last, or both (`fold`).
//!
//! Walking from stretch to stretch makes the instants strictly increasing by construction. Rejected: a search in
//! the zone itself, as libraries for cron do it, which drops lists inside a gap and knows one policy only.

mod calendar;
mod cron;
mod describe;
mod elsewhere;
mod field;
mod floating;
mod in_words;
mod pattern_fault;
mod preview;
mod ticks;

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;

pub use describe::describe;
pub use preview::{Opens, Preview, PreviewLine};
pub use ticks::Ticks;

use crate::zone::Zone;
use crate::{ParseError, duration};
use cron::CronPattern;

pub(crate) const WHAT: &str = "schedule";

/// The longest schedule text that is looked at.
const LONGEST_TEXT: usize = 256;

/// When a job ticks.
///
/// ```
/// use refrain_core::{Dst, Schedule, Zone};
///
/// let schedule = Schedule::parse("30 2 * * *")?;
/// let berlin = Zone::parse("Europe/Berlin")?;
/// // On 29 March 2026 the clock jumps from 02:00 to 03:00: half past two does not exist.
/// let tick = schedule.ticks(&berlin, Dst::default()).after("2026-03-28T12:00:00Z".parse()?);
/// assert_eq!(tick, Some("2026-03-29T01:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Cron(Box<CronPattern>),
    Every(Duration),
}

/// What to do with a fixed time of day that the clock skips or shows twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dst {
    /// The rule for the clock going forward.
    pub gap: Gap,
    /// The rule for the clock going back.
    pub fold: Fold,
}

words! {
    /// What happens to fixed times that the clock skips.
    #[derive(Default)]
    Gap, "rule for a gap" {
        /// One tick when the clock jumps, for all of them.
        #[default]
        Next = "next",
        /// No tick; the next tick opens the windows that they would have opened.
        Skip = "skip",
    }
}

words! {
    /// Which tick a fixed time that happens twice gets.
    #[derive(Default)]
    Fold, "rule for a fold" {
        /// The first.
        #[default]
        First = "first",
        /// The second.
        Last = "last",
        /// Each of them.
        Both = "both",
    }
}

impl Schedule {
    /// Reads a cron pattern of five fields (minute hour day month weekday) or six (second first), a nickname (`@hourly`,
    /// `@daily`…), or `every 15m`. The text is kept unchanged: revisions are compared by it.
    pub fn parse(text: &str) -> Result<Schedule, ParseError> {
        if text.len() > LONGEST_TEXT {
            let reason = format!("it is {} bytes long, more than {LONGEST_TEXT}", text.len());
            return Err(ParseError::whole(WHAT, text, reason));
        }
        let kind = match after_every(text) {
            Some(length) => Kind::Every(parse_every(text, length)?),
            None => Kind::Cron(Box::new(CronPattern::parse(text)?)),
        };
        Ok(Schedule { text: text.to_owned(), kind })
    }

    /// The ticks in a zone. An `every` is counted from 1970-01-01T00:00:00Z.
    pub fn ticks<'s>(&'s self, zone: &'s Zone, dst: Dst) -> Ticks<'s> {
        Ticks::new(self, zone, dst)
    }

    /// The times of a cron pattern from `from` and before `until`, on a calendar without jumps; at most 60.
    fn walls_in(&self, from: DateTime, until: DateTime) -> Vec<DateTime> {
        let Kind::Cron(pattern) = &self.kind else { return Vec::new() };
        std::iter::successors(pattern.at_or_after(from), |wall| pattern.after(*wall))
            .take_while(|wall| *wall < until)
            .take(60)
            .collect()
    }

    /// Whether it names times of day, which daylight saving can skip or repeat.
    pub fn is_fixed(&self) -> bool {
        matches!(&self.kind, Kind::Cron(pattern) if pattern.is_fixed())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What follows `every` or `@every`.
fn after_every(text: &str) -> Option<&str> {
    let text = text.trim();
    let (first, length) = text.split_once(char::is_whitespace).unwrap_or((text, text.get(text.len()..)?));
    let is_every = ["every", "@every"].iter().any(|every| first.eq_ignore_ascii_case(every));
    is_every.then(|| length.trim_start())
}

fn parse_every(text: &str, length: &str) -> Result<Duration, ParseError> {
    let advice = "write the time between two ticks, as in \"every 15m\"";
    if length.is_empty() {
        let error = ParseError::new(
            WHAT,
            text,
            pattern_fault::place(text, text.trim()),
            "a length is missing after it",
        );
        return Err(error.help(advice));
    }
    let place = pattern_fault::place(text, length);
    let every = duration::parse(length).map_err(|error| {
        let error = error.inside(WHAT, text, place.start);
        match elsewhere::length(length) {
            Some(every) => error.help(format!("write \"{every}\"")),
            None => error.help(advice),
        }
    })?;
    if every.is_zero() {
        return Err(ParseError::new(WHAT, text, place, "it would never stop ticking").help(advice));
    }
    Ok(every)
}
