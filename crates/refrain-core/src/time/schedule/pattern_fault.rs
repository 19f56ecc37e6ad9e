//! A fault in the text of a schedule: its position, the reason, and what to write instead.
//!
//! A proposal must itself be accepted, so it is parsed before it is shown. For a fault in one item the proposal is the whole
//! text with that item corrected, ready to copy. If the text has other faults that cannot be corrected, the proposal is that item.

use std::ops::Range;

use super::cron::CronPattern;
use super::{WHAT, elsewhere};
use crate::ParseError;

/// Advice for people who use another order of fields, or other fields.
pub(super) const ORDER: &str =
    "write minute hour day month weekday, as in \"0 2 * * 1-5\" for 02:00 from Monday to Friday";

/// The most faults of one text that are corrected for a proposal.
const MENDED: usize = 16;

/// A part of a text that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct PatternFault {
    pub(super) span: Range<usize>,
    pub(super) reason: String,
    pub(super) remedy: Remedy,
}

/// What to write instead.
#[derive(Debug, Clone)]
pub(super) enum Remedy {
    /// Nothing: the reason is enough.
    None,
    /// The order of the fields.
    Order,
    /// This text in place of the fault.
    Instead(String),
    /// For a step longer than its field: its length, and the one value that is left.
    LongStep(u32, String),
    /// Leaving the year out.
    NoYear,
    /// Names instead of numbers of weekdays, because numbers mean other days where the text comes from.
    NameWeekdays,
}

/// The position of a part of a text.
pub(super) fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + part.len()
}

impl PatternFault {
    /// A fault of the whole text.
    pub(super) fn whole(text: &str, reason: impl Into<String>, remedy: Remedy) -> PatternFault {
        PatternFault { span: place(text, text.trim()), reason: reason.into(), remedy }
    }

    /// The error for it.
    pub(super) fn explain(self, text: &str) -> ParseError {
        if let Some(error) = elsewhere::recognise(text) {
            return error;
        }
        let help = self.help(text);
        let error = ParseError::new(WHAT, text, self.span, self.reason);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    }

    fn help(&self, text: &str) -> Option<String> {
        match &self.remedy {
            Remedy::None => None,
            Remedy::Order => Some(ORDER.to_owned()),
            // A list with blanks in it was read as two fields: each piece of advice about one of them would be wrong.
            _ if elsewhere::is_torn(text) => None,
            Remedy::NameWeekdays => Some(elsewhere::NAME_WEEKDAYS.to_owned()),
            Remedy::NoYear => {
                Some(format!("without a year it ticks in every year: \"{}\"", self.mended(text)?))
            }
            Remedy::Instead(instead) => match self.mended(text) {
                Some(mended) => Some(format!("write \"{mended}\"")),
                None if instead.is_empty() || instead == "," => None,
                None => Some(format!("write `{instead}`")),
            },
            Remedy::LongStep(step, first) => self.shorter(text, *step, first),
        }
    }

    /// The text with this fault and all later ones corrected.
    fn mended(&self, text: &str) -> Option<String> {
        let (mut text, mut fault) = (text.to_owned(), self.clone());
        for _ in 0..MENDED {
            let instead = match &fault.remedy {
                Remedy::Instead(instead) => instead.as_str(),
                Remedy::NoYear => "",
                _ => return None,
            };
            text.replace_range(fault.span, instead);
            match CronPattern::read(&text) {
                Ok(_) => return Some(one_line(&text)),
                Err(next) => fault = next,
            }
        }
        None
    }

    /// A step as long as its field leaves one value; a longer one is meant as a length of time.
    fn shorter(&self, text: &str, step: u32, first: &str) -> Option<String> {
        let words: Vec<&str> = text.split_whitespace().take(6).collect();
        let index = words.iter().position(|word| place(text, word).contains(&self.span.start))?;
        let place_of = words.len().checked_sub(index)?;
        let (unit, size) = match place_of {
            6 => ("s", 60),
            5 => ("m", 60),
            4 => ("h", 24),
            3 => ("d", 31),
            2 => ("", 12),
            _ => ("", 7),
        };
        let beside =
            |place_of: usize| words.len().checked_sub(place_of).and_then(|at| words.get(at)).copied();
        if step == size {
            let is_restricted = |word: Option<&str>| word.is_some_and(|word| !word.starts_with(['*', '?']));
            return match place_of {
                // With a day that restricts, `*/7` was Sunday *and* that day; `SUN` would be Sunday *or* that day.
                1 if is_restricted(beside(3)) => nth_sunday(&words),
                3 if is_restricted(beside(1)) => None,
                _ => {
                    let fault = PatternFault { remedy: Remedy::Instead(first.to_owned()), ..self.clone() };
                    Some(format!("write \"{}\"", fault.mended(text)?))
                }
            };
        }
        let (before, after) = (words.get(..index)?, words.get(index + 1..)?);
        let is_alone = words.get(index)?.starts_with("*/")
            && before.iter().all(|word| super::field::is_digits(word))
            && after.iter().all(|word| *word == "*" || *word == "?");
        let every = format!("every {step}{unit}");
        let is_length = is_alone && !unit.is_empty() && super::Schedule::parse(&every).is_ok();
        is_length.then(|| format!("for ticks that far apart write \"{every}\""))
    }
}

/// The meaning of `1-7 * */7` in a crontab: the first Sunday of a month.
fn nth_sunday(words: &[&str]) -> Option<String> {
    let mut words = words.to_vec();
    let [.., day, _, weekday] = words.as_mut_slice() else { return None };
    (*weekday, *day) = match (*day, *weekday) {
        ("1-7", "*/7") => ("SUN#1", "*"),
        ("8-14", "*/7") => ("SUN#2", "*"),
        ("15-21", "*/7") => ("SUN#3", "*"),
        ("22-28", "*/7") => ("SUN#4", "*"),
        _ => return None,
    };
    let text = words.join(" ");
    CronPattern::read(&text).ok().map(|_| format!("write \"{text}\""))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
