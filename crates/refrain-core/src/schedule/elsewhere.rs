//! Schedules as other programs write them: named as what they are, with the same thing in our words where there is one.
//!
//! People bring lines of crontabs, Jenkins' `H`, AWS' `cron(…)` and `rate(…)`, zones in front of the pattern. Read as a
//! pattern with a fault they would get advice on the wrong thing. Only texts that cannot be read come here.

use std::time::Duration;

use jiff::SignedDuration;

use super::cron::{CronPattern, NICKNAMES};
use super::fault::{ORDER, place};
use super::{Schedule, WHAT};
use crate::zone::Zone;
use crate::{ParseError, duration};

/// What a text is that is not one of our schedules, if it can be told.
pub(super) fn recognise(text: &str) -> Option<ParseError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    zone_in_front(text, &words)
        .or_else(|| comment(text, &words))
        .or_else(|| length_of_time(text))
        .or_else(|| nickname(text, &words))
        .or_else(|| amazon(text))
        .or_else(|| jenkins(text, &words))
        .or_else(|| year_last(text, &words))
        .or_else(|| crontab_line(text, &words))
}

fn fault(text: &str, part: &str, reason: impl Into<String>) -> ParseError {
    ParseError::new(WHAT, text, place(text, part), reason)
}

/// From one part of a text to its end.
fn since<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(place(text, part).start..).unwrap_or_default().trim_end()
}

fn until<'t>(text: &'t str, part: &str) -> &'t str {
    text.get(..place(text, part).start).unwrap_or_default().trim()
}

fn is_readable(text: &str) -> bool {
    CronPattern::read(text).is_ok()
}

/// `CRON_TZ=America/New_York 0 5 * * *`.
fn zone_in_front(text: &str, words: &[&str]) -> Option<ParseError> {
    let first = words.first()?;
    let (name, zone) = first.split_once('=')?;
    if !["TZ", "CRON_TZ"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return None;
    }
    let zone = Zone::parse(zone.trim_matches(['"', '\'']))
        .map_or("Europe/Berlin".to_owned(), |zone| zone.to_string());
    let rest = words.get(1..).unwrap_or_default().join(" ");
    let help = if is_readable(&rest) {
        format!("write timezone = \"{zone}\" and schedule = \"{rest}\"")
    } else {
        format!("write it as timezone = \"{zone}\"")
    };
    Some(fault(text, first, "the time zone is a key of its own in the job file").help(help))
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

/// `@reboot`, `@quarterly`, `@daily root /usr/bin/backup`, `hourly`.
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
            Some(error.help(format!("write \"{name}\"; what is to be done is another key of the job file")))
        }
        _ if first.eq_ignore_ascii_case("@reboot") => {
            let error = fault(text, first, "it is not one of the nicknames");
            Some(
                error.help("a restart is not a time; `refrain serve` catches up on missed windows by itself"),
            )
        }
        _ if first.starts_with('@') => {
            let error = fault(text, text.trim(), "it is not one of the nicknames");
            Some(error.help(format!("write one of: {}", NICKNAMES.map(|(name, _)| name).join(" "))))
        }
        _ => None,
    }
}

/// `cron(0 12 * * ? *)` and `rate(5 minutes)`.
fn amazon(text: &str) -> Option<ParseError> {
    let (name, inner) = text.trim().strip_suffix(')')?.split_once('(')?;
    let reason = format!("`{name}(…)` is how AWS writes a schedule");
    let error = fault(text, text.trim(), reason);
    match name.to_ascii_lowercase().as_str() {
        "cron" => {
            let words: Vec<&str> = inner.split_whitespace().collect();
            Some(error.help(without_year(&words).unwrap_or_else(|| ORDER.to_owned())))
        }
        "rate" => match length(inner) {
            Some(every) => Some(error.help(format!("write \"{every}\""))),
            None => Some(error.help("write the time between two ticks, as in \"every 15m\"")),
        },
        "at" => Some(error.help("a schedule comes again; for one time use `refrain run`")),
        _ => None,
    }
}

/// `0 18 ? * MON-FRI *`: minute first and the year last. One of day and weekday is `?`, so it is never read as a
/// pattern with seconds.
fn year_last(text: &str, words: &[&str]) -> Option<ParseError> {
    let [_, _, day, _, weekday, year] = words else { return None };
    let is_amazon = (*day == "?" || *weekday == "?") && is_year(year);
    let error = || fault(text, year, "a sixth field at the end would be the year, as AWS writes it");
    is_amazon.then(|| without_year(words)).flatten().map(|help| error().help(help))
}

fn without_year(words: &[&str]) -> Option<String> {
    let [minute, hour, day, month, weekday, year] = words else { return None };
    let pattern = [*minute, *hour, *day, *month, *weekday].join(" ");
    if !is_readable(&pattern) {
        return None;
    }
    if weekday.bytes().any(|byte| byte.is_ascii_digit()) {
        return Some(
            "leave out the year, and name the weekdays: AWS counts them from 1 for Sunday, cron from 0"
                .to_owned(),
        );
    }
    match *year {
        "*" => Some(format!("write \"{pattern}\"")),
        _ => Some(format!("without a year it ticks in every year: \"{pattern}\"")),
    }
}

fn is_year(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit() || b"*,-/".contains(&byte))
}

/// `H/15 * * * *`.
fn jenkins(text: &str, words: &[&str]) -> Option<ParseError> {
    let is_hash = |word: &&&str| {
        let rest = word.strip_prefix(['H', 'h']);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '(', ',']))
    };
    let first = words.iter().find(is_hash)?;
    // Away from the full hour and from midnight, when most schedules tick.
    let chosen = ["17", "3", "1", "1", "1"];
    let written = words.iter().zip(chosen).map(|(word, chosen)| match word.get(1..) {
        Some(rest) if is_hash(&word) => match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((range, "")) => range.split('-').next().unwrap_or(chosen).to_owned(),
            Some((range, step)) => format!("{range}{step}"),
            None if rest.is_empty() => chosen.to_owned(),
            None => format!("*{rest}"),
        },
        _ => (*word).to_owned(),
    });
    let written = written.collect::<Vec<_>>().join(" ");
    let example = if words.len() == 5 && is_readable(&written) { written } else { "17 3 * * *".to_owned() };
    let error = fault(text, first, "there is no `H`, which lets Jenkins choose a time");
    Some(error.help(format!("choose it yourself, as in \"{example}\"")))
}

/// `0 0 * * * root /usr/bin/backup`.
fn crontab_line(text: &str, words: &[&str]) -> Option<ParseError> {
    let (count, next) = [6, 5].into_iter().find_map(|count| {
        let next = words.get(count)?;
        is_readable(&words.get(..count)?.join(" ")).then_some((count, *next))
    })?;
    let pattern = words.get(..count)?.join(" ");
    let is_field = next.bytes().all(|byte| byte.is_ascii_digit() || b"*?,-/#".contains(&byte));
    let is_command = next.starts_with(['/', '.', '~']) && next.len() > 1 && !next.starts_with("/*");
    if is_field && !is_command || count == 6 && words.len() == 7 && is_year(next) {
        return None;
    }
    // A slip in a weekday looks like the name of a user.
    if count == 5 && words.len() == 6 && !is_command {
        let error = fault(text, next, format!("`{next}` is not a weekday"));
        return Some(error.help(format!("if this is a line of a crontab, write \"{pattern}\"")));
    }
    let error =
        fault(text, since(text, next), "what a crontab has behind the pattern is not part of a schedule");
    Some(error.help(format!("write \"{pattern}\", and the command as another key of the job file")))
}

/// `15m`, `PT15M`, `5 minutes`, `every5m`.
fn length_of_time(text: &str) -> Option<ParseError> {
    let trimmed = text.trim();
    let glued = ["@every", "every"].iter().find_map(|every| {
        let (start, rest) = trimmed.split_at_checked(every.len())?;
        start.eq_ignore_ascii_case(every).then_some(rest)
    });
    let reason = if glued.is_some() { "a space is missing after `every`" } else { "it is a length of time" };
    let every = length(glued.unwrap_or(trimmed))?;
    Some(fault(text, trimmed, reason).help(format!("write \"{every}\"")))
}

/// A length that other programs write in more words, as a schedule.
pub(super) fn length(text: &str) -> Option<String> {
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
        .or_else(|| days(text))?;
    let every = format!("every {}", duration::format(length));
    Schedule::parse(&every).is_ok().then_some(every)
}

/// `5 days`: the calendar's words, of which a day is 24 hours here.
fn days(text: &str) -> Option<Duration> {
    let (count, unit) = text.split_once(' ')?;
    let length = match unit.trim().to_ascii_lowercase().as_str() {
        "day" | "days" => 86_400,
        "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    Some(Duration::from_secs(count.parse::<u32>().map(u64::from).ok()? * length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the fault is, what it is, and what is proposed.
    fn told(text: &str) -> (&str, String, String) {
        let error = Schedule::parse(text).unwrap_err();
        (&text[error.span()], error.reason().to_owned(), error.advice().unwrap_or_default().to_owned())
    }

    const ZONE: &str = "the time zone is a key of its own in the job file";
    const LINE: &str = "what a crontab has behind the pattern is not part of a schedule";
    const JENKINS: &str = "there is no `H`, which lets Jenkins choose a time";
    const YEAR: &str = "a sixth field at the end would be the year, as AWS writes it";

    /// A text, the part of it that is underlined, the reason and the advice.
    const FOREIGN: &[(&str, &str, &str, &str)] = &[
        (
            "CRON_TZ=America/New_York 0 5 * * *",
            "CRON_TZ=America/New_York",
            ZONE,
            "write timezone = \"America/New_York\" and schedule = \"0 5 * * *\"",
        ),
        ("TZ=UTC 0 0 5 * * *", "TZ=UTC", ZONE, "write timezone = \"UTC\" and schedule = \"0 0 5 * * *\""),
        ("tz=Mars 0 25 * * *", "tz=Mars", ZONE, "write it as timezone = \"Europe/Berlin\""),
        (
            "0 5 * * * # nightly",
            "# nightly",
            "a comment is not part of a schedule",
            "write \"0 5 * * *\", and the comment in a line of its own",
        ),
        (
            "@daily #x",
            "#x",
            "a comment is not part of a schedule",
            "write \"@daily\", and the comment in a line of its own",
        ),
        ("# 0 5 * * *", "# 0 5 * * *", "a comment is not part of a schedule", ORDER),
        (
            "0 0 * * * root /usr/bin/backup",
            "root /usr/bin/backup",
            LINE,
            "write \"0 0 * * *\", and the command as another key of the job file",
        ),
        (
            "0 0 * * * /usr/bin/backup -v",
            "/usr/bin/backup -v",
            LINE,
            "write \"0 0 * * *\", and the command as another key of the job file",
        ),
        (
            "0 0 1 * * * ./x",
            "./x",
            LINE,
            "write \"0 0 1 * * *\", and the command as another key of the job file",
        ),
        (
            "0 0 * * * root",
            "root",
            "`root` is not a weekday",
            "if this is a line of a crontab, write \"0 0 * * *\"",
        ),
        (
            "@daily root x",
            "root x",
            "nothing follows a nickname",
            "write \"@daily\"; what is to be done is another key of the job file",
        ),
        ("hourly", "hourly", "a nickname begins with `@`", "write \"@hourly\""),
        (" Daily ", "Daily", "a nickname begins with `@`", "write \"@daily\""),
        ("H/15 * * * *", "H/15", JENKINS, "choose it yourself, as in \"*/15 * * * *\""),
        ("H H * * *", "H", JENKINS, "choose it yourself, as in \"17 3 * * *\""),
        ("H(0-29)/10 * * * *", "H(0-29)/10", JENKINS, "choose it yourself, as in \"0-29/10 * * * *\""),
        ("0 18 ? * MON-FRI *", "*", YEAR, "write \"0 18 ? * MON-FRI\""),
        (
            "0 18 ? * MON-FRI 2026",
            "2026",
            YEAR,
            "without a year it ticks in every year: \"0 18 ? * MON-FRI\"",
        ),
        (
            "0 18 ? * 2-6 *",
            "*",
            YEAR,
            "leave out the year, and name the weekdays: AWS counts them from 1 for Sunday, cron from 0",
        ),
        (
            "cron(0 12 * * ? *)",
            "cron(0 12 * * ? *)",
            "`cron(…)` is how AWS writes a schedule",
            "write \"0 12 * * ?\"",
        ),
        (
            "rate(5 minutes)",
            "rate(5 minutes)",
            "`rate(…)` is how AWS writes a schedule",
            "write \"every 5m\"",
        ),
        ("rate(7 days)", "rate(7 days)", "`rate(…)` is how AWS writes a schedule", "write \"every 1w\""),
        ("PT15M", "PT15M", "it is a length of time", "write \"every 15m\""),
        ("15m", "15m", "it is a length of time", "write \"every 15m\""),
        ("every 15 min", " min", "` min` is no unit of time", "write \"every 15m\""),
        ("every hour", "hour", "a number is missing before `hour`", "write \"@hourly\""),
        ("every5m", "every5m", "a space is missing after `every`", "write \"every 5m\""),
        ("@Every5m", "@Every5m", "a space is missing after `every`", "write \"every 5m\""),
        (
            "every",
            "every",
            "a length is missing after it",
            "write the time between two ticks, as in \"every 15m\"",
        ),
        (
            "every 0s",
            "0s",
            "it would never stop ticking",
            "write the time between two ticks, as in \"every 15m\"",
        ),
    ];

    #[test]
    fn what_others_write_is_named_as_what_it_is() {
        for (text, part, reason, help) in FOREIGN {
            assert_eq!(told(text), (*part, (*reason).to_owned(), (*help).to_owned()), "{text}");
        }
        assert!(told("@reboot").2.contains("catches up"));
        assert!(told("@quarterly").2.ends_with("@yearly @annually"));
    }

    #[test]
    fn case_and_spaces_do_not_matter_and_the_text_stays_as_it_is() {
        for (text, same) in [
            (" every 15m", "every 15m"),
            ("Every 15m", "every 15m"),
            ("every  15m ", "every 15m"),
            ("@EVERY\t15m", "every 15m"),
            (" @daily", "@daily"),
            ("@Daily ", "@daily"),
            ("  0 0 * *  mon ", "0 0 * * MON"),
        ] {
            let (one, other) = (Schedule::parse(text).unwrap(), Schedule::parse(same).unwrap());
            assert_eq!(one.kind, other.kind, "{text}");
            assert_eq!(one.to_string(), text);
        }
    }
}
