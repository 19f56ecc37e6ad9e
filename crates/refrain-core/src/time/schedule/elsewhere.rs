//! Schedules in the syntax of other programs: recognized as such, and answered with our equivalent if there is one.
//!
//! People paste lines of crontabs, Jenkins' `H`, AWS' `cron(…)` and `rate(…)`, zones in front of the pattern. Read as a
//! faulty pattern they would get misleading advice. Only texts that cannot be read come here.

mod chosen;
mod lengths;
mod lists;
#[cfg(test)]
mod tests;
mod years;
mod zones;

use super::cron::{CronPattern, NICKNAMES};
use super::pattern_fault::{ORDER, place};
use super::{Schedule, WHAT};
use crate::ParseError;

pub(super) use lengths::length;
pub(super) use lists::is_torn;
pub(super) use years::{NAME_WEEKDAYS, counts_weekdays, is_year};

/// Recognizes a text that is not one of our schedules.
pub(super) fn recognise(text: &str) -> Option<ParseError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    quoted(text)
        .or_else(|| zones::in_front(text, &words))
        .or_else(|| zones::behind(text, &words))
        .or_else(|| comment(text, &words))
        .or_else(|| lengths::time_of_day(text))
        .or_else(|| lengths::length_of_time(text))
        .or_else(|| nickname(text, &words))
        .or_else(|| years::amazon(text))
        .or_else(|| chosen::by_another(text, &words))
        .or_else(|| lists::torn(text, &words))
        .or_else(|| years::year_last(text, &words))
        .or_else(|| crontab_line(text, &words))
}

fn fault(text: &str, part: &str, reason: impl Into<String>) -> ParseError {
    ParseError::new(WHAT, text, place(text, part), reason)
}

/// The text from one part to its end.
fn since<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(place(text, part).start..).unwrap_or_default().trim_end()
}

fn until<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(..place(text, part).start).unwrap_or_default().trim()
}

fn is_readable(text: &str) -> bool {
    CronPattern::read(text).is_ok()
}

/// `"0 5 * * *"`, with the quotes inside the text.
fn quoted(text: &str) -> Option<ParseError> {
    let trimmed = text.trim();
    let quote = trimmed.chars().next().filter(|first| ['"', '\'', '`'].contains(first))?;
    let inner = trimmed.strip_prefix(quote)?.strip_suffix(quote)?.trim();
    let error = fault(text, trimmed, "it has quotes inside its quotes");
    let is_schedule = Schedule::parse(inner).is_ok();
    Some(if is_schedule { error.help(format!("write \"{}\"", line(inner))) } else { error })
}

/// `0 5 * * * # nightly`.
fn comment(text: &str, words: &[&str]) -> Option<ParseError> {
    let begins = words.iter().find(|word| word.starts_with('#') && !word.starts_with("#!"))?;
    let before = until(text, begins);
    let error = fault(text, since(text, begins), "a comment is not part of a schedule");
    if is_readable(before) {
        return Some(error.help(format!("write \"{}\", and the comment in a line of its own", line(before))));
    }
    before.is_empty().then_some(error.help(ORDER))
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `@reboot`, `@quarterly`, `@5m`, `@daily root /usr/bin/backup`, `hourly`.
fn nickname(text: &str, words: &[&str]) -> Option<ParseError> {
    let (first, more) = words.split_first()?;
    let known = NICKNAMES.iter().find(|(name, _)| {
        name.eq_ignore_ascii_case(first) || name.get(1..).is_some_and(|name| name.eq_ignore_ascii_case(first))
    });
    match (known, more.first()) {
        (Some((name, _)), None) => {
            let reason = "a nickname begins with `@`";
            Some(fault(text, first, reason).help(format!("write \"{name}\"")))
        }
        (Some((name, _)), Some(next)) if first.starts_with('@') => {
            let error = fault(text, since(text, next), "nothing follows a nickname");
            Some(error.help(format!("write \"{name}\"; the command is another key of the job file")))
        }
        _ if first.eq_ignore_ascii_case("@reboot") => {
            let error = fault(text, first, "it is not one of the nicknames");
            Some(
                error.help("a restart is not a time; `refrain serve` catches up on missed windows by itself"),
            )
        }
        _ if first.starts_with('@')
            && let Some(every) = length(text.trim().trim_start_matches('@')) =>
        {
            Some(
                fault(text, text.trim(), "it is not one of the nicknames").help(format!("write \"{every}\"")),
            )
        }
        _ if first.starts_with('@') => {
            let error = fault(text, text.trim(), "it is not one of the nicknames");
            Some(error.help(format!("write one of: {}", NICKNAMES.map(|(name, _)| name).join(" "))))
        }
        _ => None,
    }
}

/// `0 0 * * * root /usr/bin/backup`.
fn crontab_line(text: &str, words: &[&str]) -> Option<ParseError> {
    let (count, next) = [6, 5].into_iter().find_map(|count| {
        let next = words.get(count)?;
        is_readable(&words.get(..count)?.join(" ")).then_some((count, *next))
    })?;
    let pattern = words.get(..count)?.join(" ");
    // A word after the blank in a list is the rest of the list, not a command.
    if words.get(count..)?.iter().any(|word| lists::is_part(word)) {
        return None;
    }
    let is_field = next.bytes().all(|byte| byte.is_ascii_digit() || b"*?,-/#".contains(&byte));
    let is_command = next.starts_with(['/', '.', '~']) && next.len() > 1 && !next.starts_with("/*");
    if is_field && !is_command || count == 6 && words.len() == 7 && is_year(next) {
        return None;
    }
    // A typing error in a weekday looks like a user name.
    if count == 5 && words.len() == 6 && !is_command {
        let error = fault(text, next, format!("`{next}` is not a weekday"));
        return Some(error.help(format!("if this is a line of a crontab, write \"{pattern}\"")));
    }
    let error = fault(text, since(text, next), "the command of a crontab line is not part of a schedule");
    Some(error.help(format!("write \"{pattern}\", and the command as another key of the job file")))
}
