//! The description of a pattern is true: the test parses it and derives the ticks from it.
//!
//! This parser knows English and the calendar, not cron: it takes a description apart and asks of every second or
//! minute whether the words name it.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use proptest::prelude::*;
use refrain_core::{Schedule, Zone, schedule};

use super::timetable;

/// The part of the sentence about the times, without the zone and the rest.
fn words(pattern: &str) -> String {
    let output = schedule::describe(&timetable(pattern, "UTC", "day"));
    output.split(" (UTC).").next().unwrap().to_owned()
}

#[test]
fn patterns_list_their_values_unless_every_describes_them_all() {
    for (pattern, output) in [
        ("* * * * *", "Every minute"),
        ("*/15 * * * *", "Every 15 minutes from minute 0"),
        ("0-30/10 * * * *", "At minutes 0, 10, 20, and 30 past every hour"),
        ("*/15,*/20 * * * *", "At minutes 0, 15, 20, 30, 40, and 45 past every hour"),
        ("*/5,7 * * * *", "At minutes 0, 5, 7, 10, 15, 20, 25, 30, 35, 40, 45, 50, and 55 past every hour"),
        ("1,*/30 * * * *", "At minutes 0, 1, and 30 past every hour"),
        ("0 0-12/3 * * *", "At 00:00, 03:00, 06:00, 09:00, and 12:00"),
        ("1 1 */3,1,10 * * *", "At second 1 of minute 1 past hours 0, 1, 3, 6, 9, 10, 12, 15, 18, and 21"),
        ("0 0 1 2-11/3 *", "At 00:00, on day 1 of the month, in February, May, August, and November"),
        ("0 0 1 Jan-Aug/4 *", "At 00:00, on day 1 of the month, in January and May"),
        ("*/45 * * * *", "At minutes 0 and 45 past every hour"),
        ("5 * * * *", "At minute 5 past every hour"),
        ("0 */2 * * *", "At minute 0 past every 2nd hour from midnight"),
        (
            "*/10 9-17 * * 1-5",
            "Every 10 minutes from minute 0 of hours 9 to 17, on Monday, Tuesday, Wednesday, Thursday, and Friday",
        ),
        ("0 9 * * sat,7", "At 09:00, on Saturday and Sunday"),
        ("0 0 L,LW * *", "At 00:00, on the last day, and the last weekday of the month"),
        ("0 0 L-3 * *", "At 00:00, on the day 3 days before the last day of the month"),
        ("0 0 13 * 5", "At 00:00, on day 13 of the month, and also on Friday"),
        ("0 0 */10 * 1", "At 00:00, on days 1, 11, 21, and 31 of the month, if that is Monday"),
        ("0 0 1,* * 1", "At 00:00"),
        ("0 0 * * MON#1,5L", "At 00:00, on the first Monday of the month and the last Friday of the month"),
        ("0 9 15W * *", "At 09:00, on the working day nearest to day 15 of the month"),
        ("30 0 2 * * *", "At 02:00:30"),
        ("*/20 30 2 * * *", "Every 20 seconds from second 0 of 02:30"),
        ("* * * * * *", "Every second"),
        ("@weekly", "At 00:00, on Sunday"),
    ] {
        assert_eq!(words(pattern), output, "{pattern}");
    }
}

/// Whether the words name a wall time, in all of their parts.
fn names(output: &str, wall: DateTime) -> bool {
    let (time, rest) = output.split_once(", on ").map_or((output, ""), |(time, rest)| (time, rest));
    let (time, in_time) = time.split_once(", in ").unwrap_or((time, ""));
    let (days, in_days) = rest.split_once(", in ").unwrap_or((rest, ""));
    let months = if in_time.is_empty() { in_days } else { in_time };
    let month = wall.date().strftime("%B").to_string();
    let is_month = months.is_empty() || items(months).contains(&month.as_str());
    is_month && names_date(days, wall.date()) && names_time(time, wall)
}

/// The parts of a list in English.
fn items(list: &str) -> Vec<&str> {
    let parts = list.split(", ").flat_map(|part| part.split(" and ")).flat_map(|part| part.split(" or "));
    parts.map(|part| part.trim_start_matches("and ").trim_start_matches("or ")).collect()
}

/// `5`, `9 to 17`, `0, 10, and 20`.
fn has_number(list: &str, number: i8) -> bool {
    items(list).iter().any(|item| match item.split_once(" to ") {
        Some((low, high)) => (low.parse().unwrap()..=high.parse().unwrap()).contains(&number),
        None => item.parse::<i8>().unwrap() == number,
    })
}

fn names_time(time: &str, wall: DateTime) -> bool {
    let clock = wall.strftime("%H:%M").to_string();
    if let Some(times) = time.strip_prefix("At ").filter(|times| times.get(2..3) == Some(":")) {
        let exact = wall.strftime("%H:%M:%S").to_string();
        return items(times).iter().any(|named| *named == exact || *named == clock && wall.second() == 0);
    }
    let (mut second, mut rest) = (wall.second() == 0, time);
    if let Some(after) = time.strip_prefix("Every second") {
        (second, rest) = (true, after.trim_start_matches(" of "));
    } else if let Some((count, after)) =
        time.strip_prefix("Every ").and_then(|after| after.split_once(" seconds from second 0"))
    {
        // Used only for elapsed time: a step that restarts each minute, hour or day is not "every so often".
        let since_the_hour = i32::from(wall.minute()) * 60 + i32::from(wall.second());
        second = since_the_hour % count.parse::<i32>().unwrap() == 0;
        rest = after.trim_start_matches(" of ");
    } else if let Some(after) = time.strip_prefix("At second") {
        let (list, after) = after
            .trim_start_matches('s')
            .trim_start()
            .split_once(" of ")
            .unwrap_or((after.trim_start_matches('s').trim_start(), ""));
        second = has_number(list, wall.second());
        rest = after;
    }
    second && names_minute(rest, wall, &clock)
}

fn names_minute(rest: &str, wall: DateTime, clock: &str) -> bool {
    let rest = rest.strip_prefix("At ").unwrap_or(rest).to_lowercase();
    if rest.is_empty() {
        return true;
    }
    if rest.get(2..3) == Some(":") {
        return items(&rest).contains(&clock);
    }
    let every =
        |text: &str| text.trim_end_matches(|letter: char| letter.is_alphabetic()).parse::<i32>().unwrap();
    let (minute, hours) = if let Some(list) = rest.strip_prefix("minute") {
        let (list, hours) = list.trim_start_matches('s').trim_start().split_once(" past ").unwrap();
        (has_number(list, wall.minute()), hours)
    } else if let Some(after) = rest.strip_prefix("every minute") {
        (true, after.strip_prefix(" of ").unwrap_or("every hour"))
    } else {
        let (count, after) = rest.strip_prefix("every ").unwrap().split_once(" minute").unwrap();
        let after = after.trim_start_matches('s').strip_prefix(" from minute 0").unwrap();
        (
            (i32::from(wall.hour()) * 60 + i32::from(wall.minute())) % every(count) == 0,
            after.strip_prefix(" of ").unwrap_or("every hour"),
        )
    };
    let hour = match hours {
        "every hour" => true,
        _ => match hours.strip_prefix("every ") {
            Some(nth) => {
                let since_the_year = i32::from(wall.date().day_of_year()) * 24 + i32::from(wall.hour());
                since_the_year % every(nth.strip_suffix(" hour from midnight").unwrap()) == 0
            }
            None => {
                has_number(hours.trim_start_matches("hour").trim_start_matches('s').trim_start(), wall.hour())
            }
        },
    };
    minute && hour
}

fn names_date(days: &str, date: Date) -> bool {
    if days.is_empty() {
        return true;
    }
    if let Some((either, or)) = days.split_once(", and also on ") {
        return names_day(either, date) || names_weekday(or, date);
    }
    if let Some((day, weekday)) = days.split_once(", if that is ") {
        return names_day(day, date) && names_weekday(weekday, date);
    }
    if days.starts_with("day")
        || days.starts_with("the working")
        || days.contains("last day")
        || days.contains("last weekday")
    {
        names_day(days, date)
    } else {
        names_weekday(days, date)
    }
}

/// `days 1 to 7, and the last day of the month`.
fn names_day(days: &str, date: Date) -> bool {
    let days = days.strip_suffix(" of the month").unwrap();
    let last = date.days_in_month();
    let before_last = |part: &str| part.split(' ').find_map(|word| word.parse::<i8>().ok()).unwrap_or(0);
    let (numbers, others) = match days.find("the ") {
        Some(0) => ("", days),
        Some(at) => (days[..at].trim_end_matches(", and "), &days[at..]),
        None => (days, ""),
    };
    let numbers = numbers.trim_start_matches("day").trim_start_matches('s').trim_start();
    let is_number = !numbers.is_empty() && has_number(numbers, date.day());
    let is_other = others.split(", and ").filter(|part| !part.is_empty()).any(|part| {
        if part == "the last weekday" {
            return nearest(date, last) == date.day();
        }
        match part.strip_prefix("the working day nearest to ") {
            Some(day) => {
                let day = day
                    .strip_prefix("day ")
                    .map_or_else(|| last - before_last(day), |day| day.parse().unwrap());
                (1..=last).contains(&day) && nearest(date, day) == date.day()
            }
            None => date.day() == last - before_last(part),
        }
    });
    is_number || is_other
}

/// The nearest working day of this month, found by looking further and further away.
fn nearest(date: Date, day: i8) -> i8 {
    let works = |day: i8| {
        let day = Date::new(date.year(), date.month(), day).ok()?;
        (day.weekday().to_monday_one_offset() <= 5).then(|| day.day())
    };
    [0, -1, 1, -2, 2].into_iter().find_map(|away| works(day + away)).unwrap()
}

/// `Monday, the first Tuesday of the month, or the last Friday of the month`.
fn names_weekday(list: &str, date: Date) -> bool {
    let weekday = date.strftime("%A").to_string();
    items(list).iter().any(|item| {
        let item = item.trim_end_matches(" of the month");
        let Some((nth, name)) = item.strip_prefix("the ").and_then(|item| item.split_once(' ')) else {
            return *item == weekday;
        };
        let which = ["first", "second", "third", "fourth", "fifth"].iter().position(|word| *word == nth);
        let is_which = match which {
            Some(which) => usize::try_from((date.day() - 1) / 7).unwrap() == which,
            None => date.day() + 7 > date.days_in_month(),
        };
        name == weekday && is_which
    })
}

fn field(values: &'static str) -> impl Strategy<Value = String> {
    proptest::collection::vec(values, 1..3).prop_map(|items| items.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_words_name_the_ticks_and_nothing_else(
        second in prop::option::of(field("\\*|\\*/(7|15|20)|0|[1-5][0-9]|[1-9]/20")),
        minute in field("\\*|\\*/(7|15|20|45)|0|[1-5][0-9]|0-30/10|[1-9]/15"),
        hour in field("\\*|\\*/[2-9]|[0-9]|1[0-9]|9-17|[1-9]/6"),
        day in field("\\*|\\*|\\*/[2-9]|[1-9]|[12][0-9]|L|LW|L-[1-9]|L-[1-9]W|15W|1-7|28-31"),
        month in field("\\*|\\*/[2-6]|[1-9]|JAN|2-11/3"),
        weekday in field("\\*|\\*|\\*/[2-6]|[0-7]|MON-FRI|5L|MON#1|SUN#5"),
        start in 946_684_800_i64..4_000_000_000,
    ) {
        let second = second.map_or(String::new(), |second| format!("{second} "));
        let pattern = format!("{second}{minute} {hour} {day} {month} {weekday}");
        let Ok(schedule) = Schedule::parse(&pattern) else { return Ok(()) };
        let output = words(&pattern);
        let utc = Zone::utc();
        let ticks = schedule.ticks(&utc, refrain_core::Dst::default());
        let wall = |at: Timestamp| at.to_zoned(TimeZone::UTC).datetime();
        let mut at = Timestamp::from_second(start).unwrap();
        for _ in 0..4 {
            let Some(tick) = ticks.after(at) else { break };
            prop_assert!(names(&output, wall(tick)), "`{}` is told as `{}`, yet ticks at {}", pattern, output, tick);
            // Between two ticks the words name nothing: this is checked in steps that meet every minute near the
            // ticks and the same time of day far from them.
            let seconds = (tick.as_second() - at.as_second()).min(1_000);
            for step in 1..seconds {
                let between = at + SignedDuration::from_secs(step);
                prop_assert!(!names(&output, wall(between)), "`{}` is told as `{}`, yet does not tick at {}", pattern, output, between);
            }
            let days = (1..70).map(|count| tick - SignedDuration::from_hours(24 * count));
            for earlier in days.take_while(|earlier| *earlier > at) {
                prop_assert!(!names(&output, wall(earlier)), "`{}` is told as `{}`, yet does not tick at {}", pattern, output, earlier);
            }
            at = tick;
        }
    }
}
