//! A cron pattern in words that can be taken literally.
//!
//! A field is described as "every" so often only if it is `*`, or `*/n` and `n` divides the field; otherwise its values are
//! listed, because `*/45` ticks a quarter of an hour apart and `0-30/10` pauses for half an hour.

use super::calendar::{FieldValues, Floating, Set};
use super::cron::CronPattern;
use super::field::{FIELDS, Field, MONTHS, WEEKDAYS};

/// The most times of day that are listed one by one.
const TIMES: u32 = 8;

/// How a field is described.
enum Described {
    /// All values.
    Every,
    /// Each nth, from the lowest value.
    Nth(i8),
    /// These values.
    These(Set),
}

impl Described {
    fn of(field: &Field, values: &FieldValues) -> Described {
        match values.step {
            _ if field.is_full(values) => Described::Every,
            Some(step) if field.size() % step == 0 => Described::Nth(step),
            _ => Described::These(values.set),
        }
    }
}

/// Describes when the pattern ticks.
pub(super) fn of(pattern: &CronPattern) -> String {
    let mut words = times(pattern);
    for part in [days(pattern), months(pattern)].into_iter().flatten() {
        words.push_str(", ");
        words.push_str(&part);
    }
    words
}

fn times(pattern: &CronPattern) -> String {
    let [of_seconds, of_minutes, of_hours, ..] = &FIELDS;
    let times = &pattern.times;
    let seconds = Described::of(of_seconds, &times.seconds);
    let minutes = Described::of(of_minutes, &times.minutes);
    let hours = Described::of(of_hours, &times.hours);
    let is_on_the_minute = times.seconds == FieldValues::only(0) || times.seconds.set == Set::of([0]);
    if let Some(clock) = clock_times(&seconds, &minutes, &hours) {
        return format!("At {clock}");
    }
    if is_on_the_minute {
        return minutes_alone(&minutes, &hours);
    }
    let of_what = match (&minutes, &hours) {
        (Described::Every, Described::Every) => String::new(),
        (Described::Every, _) => format!(" of every minute{}", past(" of", &hours)),
        (Described::Nth(step), Described::Every) => format!(" of every {} minute from minute 0", nth(*step)),
        (Described::Nth(step), _) => {
            format!(" of every {} minute from minute 0{}", nth(*step), past(" of", &hours))
        }
        (Described::These(set), _) => match clock_times(&Described::These(Set::of([0])), &minutes, &hours) {
            Some(clock) => format!(" of {clock}"),
            None => format!(" of {}{}", numbered("minute", *set), past(" past", &hours)),
        },
    };
    match seconds {
        Described::Every => format!("Every second{of_what}"),
        Described::Nth(step) => format!("Every {step} seconds from second 0{of_what}"),
        Described::These(set) => format!("At {}{of_what}", numbered("second", set)),
    }
}

fn minutes_alone(minutes: &Described, hours: &Described) -> String {
    match minutes {
        Described::Every => match hours {
            Described::Every => "Every minute".to_owned(),
            _ => format!("Every minute{}", past(" of", hours)),
        },
        Described::Nth(step) => match hours {
            Described::Every => format!("Every {step} minutes from minute 0"),
            _ => format!("Every {step} minutes from minute 0{}", past(" of", hours)),
        },
        Described::These(set) => format!("At {}{}", numbered("minute", *set), past(" past", hours)),
    }
}

fn past(preposition: &str, hours: &Described) -> String {
    match hours {
        Described::Every => format!("{preposition} every hour"),
        Described::Nth(step) => format!("{preposition} every {} hour from midnight", nth(*step)),
        Described::These(set) => format!("{preposition} {}", numbered("hour", *set)),
    }
}

/// A few times of day, one by one.
fn clock_times(seconds: &Described, minutes: &Described, hours: &Described) -> Option<String> {
    let (Described::These(seconds), Described::These(minutes), Described::These(hours)) =
        (seconds, minutes, hours)
    else {
        return None;
    };
    if seconds.count() * minutes.count() * hours.count() > TIMES {
        return None;
    }
    let is_on_the_minute = *seconds == Set::of([0]);
    let mut parts = Vec::new();
    for hour in hours.iter() {
        for minute in minutes.iter() {
            parts.extend(seconds.iter().map(|second| {
                let seconds = if is_on_the_minute { String::new() } else { format!(":{second:02}") };
                format!("{hour:02}:{minute:02}{seconds}")
            }));
        }
    }
    Some(list(&parts, "and"))
}

fn days(pattern: &CronPattern) -> Option<String> {
    let [_, _, _, of_days, _, of_weekdays] = &FIELDS;
    let dates = &pattern.dates;
    let is_any = |field: &Field, values: &FieldValues| field.is_full(values);
    let (any_day, any_weekday) = (is_any(of_days, &dates.days), is_any(of_weekdays, &dates.weekdays));
    match (any_day, any_weekday) {
        (true, true) => None,
        (true, _) | (_, true) if dates.either() => None,
        (false, true) => Some(format!("on {}", days_of_month(&dates.days))),
        (true, false) => Some(format!("on {}", weekdays(&dates.weekdays, "and"))),
        (false, false) if dates.either() => Some(format!(
            "on {}, and also on {}",
            days_of_month(&dates.days),
            weekdays(&dates.weekdays, "and")
        )),
        (false, false) => {
            Some(format!("on {}, if that is {}", days_of_month(&dates.days), weekdays(&dates.weekdays, "or")))
        }
    }
}

fn days_of_month(values: &FieldValues) -> String {
    let mut parts = Vec::new();
    if !values.set.is_empty() {
        parts.push(numbered("day", values.set));
    }
    parts.extend(values.floating.iter().map(|floating| match *floating {
        Floating::BeforeLast(0) => "the last day".to_owned(),
        Floating::BeforeLast(before) => format!("the day {} before the last day", count_of_days(before)),
        Floating::Nearest(day) => format!("the working day nearest to day {day}"),
        Floating::NearestBeforeLast(0) => "the last weekday".to_owned(),
        Floating::NearestBeforeLast(before) => {
            format!("the working day nearest to the day {} before the last day", count_of_days(before))
        }
        Floating::Nth(..) | Floating::LastOf(_) => String::new(),
    }));
    parts.dedup();
    format!("{} of the month", parts.join(", and "))
}

fn count_of_days(count: i8) -> String {
    if count == 1 { "1 day".to_owned() } else { format!("{count} days") }
}

fn weekdays(values: &FieldValues, joined: &str) -> String {
    // A week is described from Monday on.
    let from_monday = (1..=7).map(|day| day % 7).filter(|day| values.set.has(*day));
    let mut parts: Vec<String> = from_monday.map(|day| name(&WEEKDAYS, day, 0)).collect();
    for floating in &values.floating {
        parts.push(match *floating {
            Floating::Nth(day, count) => {
                let ordinal = ["first", "second", "third", "fourth", "fifth"];
                let ordinal = usize::try_from(count - 1).ok().and_then(|at| ordinal.get(at)).copied();
                format!("the {} {} of the month", ordinal.unwrap_or_default(), name(&WEEKDAYS, day, 0))
            }
            Floating::LastOf(day) => format!("the last {} of the month", name(&WEEKDAYS, day, 0)),
            _ => continue,
        });
    }
    parts.dedup();
    list(&parts, joined)
}

fn months(pattern: &CronPattern) -> Option<String> {
    let [_, _, _, _, of_months, _] = &FIELDS;
    let values = &pattern.dates.months;
    let parts: Vec<String> = values.set.iter().map(|month| name(&MONTHS, month, 1)).collect();
    (!of_months.is_full(values)).then(|| format!("in {}", list(&parts, "and")))
}

fn name(names: &[&str], value: i8, lowest: i8) -> String {
    let at = usize::try_from(value - lowest).ok();
    at.and_then(|at| names.get(at)).copied().unwrap_or_default().to_owned()
}

/// `minute 5`, `minutes 0, 10, and 20`, `hours 9 to 17`.
fn numbered(unit: &str, set: Set) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut values = set.iter().peekable();
    while let Some(first) = values.next() {
        let mut last = first;
        while let Some(next) = values.next_if(|next| *next == last + 1) {
            last = next;
        }
        match last - first {
            0 => parts.push(first.to_string()),
            1 => parts.extend([first.to_string(), last.to_string()]),
            _ => parts.push(format!("{first} to {last}")),
        }
    }
    let plural = if set.count() == 1 { "" } else { "s" };
    format!("{unit}{plural} {}", list(&parts, "and"))
}

fn list(items: &[String], joined: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first, second] => format!("{first} {joined} {second}"),
        [most @ .., last] => format!("{}, {joined} {last}", most.join(", ")),
    }
}

fn nth(count: i8) -> String {
    match count {
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        _ => format!("{count}th"),
    }
}
