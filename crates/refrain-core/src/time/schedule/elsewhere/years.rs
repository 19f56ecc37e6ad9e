//! Schedules with a year, as AWS and Quartz write them: our schedules have no end, and 1 is another weekday.

use super::{ORDER, fault, is_readable, length};
use crate::ParseError;

/// Advice about numbers of weekdays in such schedules.
pub(in super::super) const NAME_WEEKDAYS: &str =
    "leave out the year, and name the weekdays: Quartz and AWS count them from 1 for Sunday, cron from 0";

/// `cron(0 12 * * ? *)` and `rate(5 minutes)`.
pub(super) fn amazon(text: &str) -> Option<ParseError> {
    let (name, inner) = text.trim().strip_suffix(')')?.split_once('(')?;
    let reason = format!("`{name}(…)` is how AWS writes a schedule");
    let error = fault(text, text.trim(), reason);
    match name.to_ascii_lowercase().as_str() {
        "cron" => {
            let words: Vec<&str> = inner.split_whitespace().collect();
            let help = without_year(&words).or_else(|| as_it_is(&words));
            Some(error.help(help.unwrap_or_else(|| ORDER.to_owned())))
        }
        "rate" => match length(inner) {
            Some(every) => Some(error.help(format!("write \"{every}\""))),
            None => Some(error.help("write the time between two ticks, as in \"every 15m\"")),
        },
        "at" => Some(error.help("a schedule repeats; to run once, use `refrain run`")),
        _ => None,
    }
}

/// `0 18 ? * MON-FRI *` and `0 12 * * * 2026`: minute first and the year last. One of day and weekday is `?`, or the year
/// has four digits, so it is never read as a pattern with seconds.
pub(super) fn year_last(text: &str, words: &[&str]) -> Option<ParseError> {
    let [_, _, day, _, weekday, year] = words else { return None };
    let has_year = is_year(year) && year.split([',', '-', '/']).any(|number| number.len() == 4);
    let is_amazon = (*day == "?" || *weekday == "?") && is_year(year) || has_year;
    let error = || fault(text, year, "a sixth field at the end would be the year, as AWS writes it");
    is_amazon.then(|| without_year(words)).flatten().map(|help| error().help(help))
}

fn without_year(words: &[&str]) -> Option<String> {
    let [minute, hour, day, month, weekday, year] = words else { return None };
    let pattern = [*minute, *hour, *day, *month, *weekday].join(" ");
    if !is_readable(&pattern) {
        return None;
    }
    if counts_weekdays(weekday) {
        return Some(NAME_WEEKDAYS.to_owned());
    }
    match *year {
        "*" => Some(format!("write \"{pattern}\"")),
        _ => Some(format!("without a year it ticks in every year: \"{pattern}\"")),
    }
}

/// `cron(0 12 * * ?)`, which has no year although it should.
fn as_it_is(words: &[&str]) -> Option<String> {
    let pattern = words.join(" ");
    if words.len() != 5 || !is_readable(&pattern) {
        return None;
    }
    let is_counted = words.last().is_some_and(|weekday| counts_weekdays(weekday));
    Some(if is_counted { NAME_WEEKDAYS.to_owned() } else { format!("write \"{pattern}\"") })
}

/// Whether a weekday is a number, which means another day where 1 is Sunday. `*/2` has the same days there, and in `MON#1`
/// the number is that of a week.
pub(in super::super) fn counts_weekdays(field: &str) -> bool {
    field.split(',').any(|item| {
        let day = item.split('#').next().unwrap_or(item);
        !day.starts_with("*/") && day.bytes().any(|byte| byte.is_ascii_digit())
    })
}

pub(in super::super) fn is_year(word: &str) -> bool {
    !word.starts_with(',') && word.bytes().all(|byte| byte.is_ascii_digit() || b"*,-/".contains(&byte))
}
