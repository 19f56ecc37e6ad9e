//! Lengths and times of day in the syntax of other programs, as a schedule.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

use super::super::field::is_digits;
use super::{Schedule, fault, is_readable};
use crate::{ParseError, duration};

/// `15m`, `PT15M`, `5 minutes`, `every5m`.
pub(super) fn length_of_time(text: &str) -> Option<ParseError> {
    let trimmed = text.trim();
    let glued = ["@every", "every"].iter().find_map(|every| {
        let (start, rest) = trimmed.split_at_checked(every.len())?;
        start.eq_ignore_ascii_case(every).then_some(rest)
    });
    let reason = if glued.is_some() { "a space is missing after `every`" } else { "it is a length of time" };
    let every = length(glued.unwrap_or(trimmed))?;
    Some(fault(text, trimmed, reason).help(format!("write \"{every}\"")))
}

/// A length that other programs write with more words, as a schedule.
pub(in super::super) fn length(text: &str) -> Option<String> {
    match text.to_ascii_lowercase().as_str() {
        "hour" => return Some("@hourly".to_owned()),
        "day" => return Some("@daily".to_owned()),
        "week" => return Some("@weekly".to_owned()),
        "minute" => return Some("every 1m".to_owned()),
        _ => {}
    }
    let length = duration::parse(text)
        .ok()
        .or_else(|| text.parse::<SignedDuration>().ok().and_then(|length| Duration::try_from(length).ok()))
        .or_else(|| days(text))
        .or_else(|| calendar(text))
        .or_else(|| in_small_letters(text))?;
    let every = format!("every {}", duration::format(length));
    Schedule::parse(&every).is_ok().then_some(every)
}

/// `5 days` in words; a day is 24 hours here.
fn days(text: &str) -> Option<Duration> {
    let (count, unit) = text.split_once(' ')?;
    let length = match unit.trim().to_ascii_lowercase().as_str() {
        "day" | "days" => 86_400,
        "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    Some(Duration::from_secs(count.parse::<u32>().map(u64::from).ok()? * length))
}

/// `P1D`; a day is 24 hours here, and months and years have no length.
fn calendar(text: &str) -> Option<Duration> {
    let span = text.parse::<Span>().ok().filter(|_| text.starts_with(['P', 'p']))?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(length).ok()
}

/// `2H`; but `M` may be months.
fn in_small_letters(text: &str) -> Option<Duration> {
    if text.contains('M') { None } else { duration::parse(&text.to_ascii_lowercase()).ok() }
}

/// `02:30`, `2:30:15`.
pub(super) fn time_of_day(text: &str) -> Option<ParseError> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    let is_number = |part: &&str| (1..=2).contains(&part.len()) && is_digits(part);
    let numbers: Vec<u8> =
        parts.iter().filter(|part| is_number(part)).map_while(|part| part.parse().ok()).collect();
    let pattern = match numbers.as_slice() {
        [hour, minute] => format!("{minute} {hour} * * *"),
        [hour, minute, second] => format!("{second} {minute} {hour} * * *"),
        _ => return None,
    };
    let is_whole = numbers.len() == parts.len() && is_readable(&pattern);
    is_whole.then(|| fault(text, text.trim(), "it is a time of day").help(format!("write \"{pattern}\"")))
}
