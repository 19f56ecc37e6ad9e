//! Cron patterns: read strictly, with the fault pointed out, and searched on a calendar without jumps.
//!
//! [`croner`] does the searching. Its parser is lenient where a slip of the keyboard should be seen (`1,,2`,
//! `MONMON`, a step longer than its field, 30 February) and gives no positions, so each item is judged here
//! first; what passes, croner accepts.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;

use super::WHAT;
use crate::ParseError;

/// A pattern that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronPattern {
    cron: Cron,
    fixed: bool,
}

const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const ADVICE: &str =
    "write minute hour day month weekday, as in \"0 2 * * 1-5\" for 02:00 from Monday to Friday";

impl CronPattern {
    pub(super) fn parse(text: &str) -> Result<CronPattern, ParseError> {
        if text.starts_with('@') {
            let known = NICKNAMES.iter().find(|(name, _)| *name == text);
            let (_, pattern) = known.ok_or_else(|| unknown_nickname(text))?;
            return Self::parse(pattern);
        }
        let words = words(text);
        let fields: &[Field] = match words.len() {
            5 => FIELDS.get(1..).unwrap_or_default(),
            6 => &FIELDS,
            count => return Err(wrong_count(text, &words, count)),
        };
        let read: Result<Vec<String>, ParseError> =
            fields.iter().zip(&words).map(|(field, (at, word))| field.read(text, *at, word)).collect();
        let fixed = !words.iter().take(words.len() - 3).any(|(_, word)| word.contains('*'));
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser
            .parse(&read?.join(" "))
            .map_err(|error| ParseError::whole(WHAT, text, error.to_string()).help(ADVICE))?;
        let pattern = CronPattern { cron, fixed };
        // The calendar repeats within 400 years of any date, so one search settles it.
        if pattern.at_or_after(jiff::civil::date(2000, 1, 1).at(0, 0, 0, 0)).is_none() {
            return Err(ParseError::whole(WHAT, text, "there is no such date, so it would never tick"));
        }
        Ok(pattern)
    }

    /// Whether it names times of day, as against "every so often".
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    pub(super) fn words(&self) -> String {
        self.cron.describe()
    }

    pub(super) fn after(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_next_occurrence(&wall, false).ok()
    }

    pub(super) fn at_or_after(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_next_occurrence(&wall, true).ok()
    }

    pub(super) fn before(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_previous_occurrence(&wall, false).ok()
    }

    pub(super) fn at_or_before(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_previous_occurrence(&wall, true).ok()
    }
}

fn unknown_nickname(text: &str) -> ParseError {
    let error = ParseError::whole(WHAT, text, "it is not one of the nicknames");
    match text {
        "@reboot" => {
            error.help("a restart is not a time; `refrain serve` catches up on missed windows by itself")
        }
        _ => error.help(format!("write one of: {}", NICKNAMES.map(|(name, _)| name).join(" "))),
    }
}

fn wrong_count(text: &str, words: &[(usize, &str)], count: usize) -> ParseError {
    match (count, words.get(6)) {
        (7.., Some((extra, _))) => {
            ParseError::new(WHAT, text, *extra..text.len(), "there is no field for a year").help(ADVICE)
        }
        (1, _) => ParseError::whole(WHAT, text, "it is neither a cron pattern nor `every` with a length")
            .help(ADVICE),
        _ => {
            let reason = format!("it has {count} fields; a pattern has 5, or 6 with seconds first");
            ParseError::whole(WHAT, text, reason).help(ADVICE)
        }
    }
}

/// One field of a pattern: what it is called and what may stand in it.
struct Field {
    name: &'static str,
    low: u16,
    high: u16,
    names: &'static [&'static str],
}

const FIELDS: [Field; 6] = [
    Field { name: "second", low: 0, high: 59, names: &[] },
    Field { name: "minute", low: 0, high: 59, names: &[] },
    Field { name: "hour", low: 0, high: 23, names: &[] },
    Field { name: "day", low: 1, high: 31, names: &[] },
    Field { name: "month", low: 1, high: 12, names: &MONTHS },
    Field { name: "weekday", low: 0, high: 7, names: &WEEKDAYS },
];

impl Field {
    /// The field as croner is to read it: names as numbers, Sunday as 0 wherever a day stands alone.
    fn read(&self, text: &str, mut at: usize, field: &str) -> Result<String, ParseError> {
        if field == "?" && ["day", "weekday"].contains(&self.name) {
            return Ok(field.to_owned());
        }
        let mut items = Vec::new();
        for item in field.split(',') {
            let here = at..at + item.len();
            let read = self.item(&item.to_ascii_uppercase());
            items.push(read.map_err(|reason| ParseError::new(WHAT, text, here, reason).help(ADVICE))?);
            at += item.len() + 1;
        }
        Ok(items.join(","))
    }

    fn item(&self, item: &str) -> Result<String, String> {
        if item.is_empty() {
            return Err(format!("an item of the {} list is empty", self.name));
        }
        if let Some(special) = self.special(item)? {
            return Ok(special);
        }
        let Some((range, step)) = item.split_once('/') else {
            return self.range(item);
        };
        if range != "*" && !range.contains('-') {
            return Err(format!("a step needs a range: write `{range}-{}/{step}` or `*/{step}`", self.high));
        }
        let longest = self.high - self.low;
        match step.parse::<u16>() {
            Ok(step) if (1..=longest).contains(&step) => Ok(format!("{}/{step}", self.range(range)?)),
            Ok(_) => Err(format!("a {} can step by 1 to {longest}, not by {step}", self.name)),
            Err(_) => Err(format!("`{step}` is not a number of {}s to step by", self.name)),
        }
    }

    /// `L`, `LW` and `15W` among days; `5L` and `MON#1` among weekdays.
    fn special(&self, item: &str) -> Result<Option<String>, String> {
        match self.name {
            "day" if item == "L" || item == "LW" => Ok(Some(item.to_owned())),
            "day" => match item.strip_suffix('W') {
                Some(day) => self.value(day).map(|day| Some(format!("{day}W"))),
                None => Ok(None),
            },
            "weekday" if item == "L" => {
                Err("`L` follows a weekday: `5L` is the last Friday of a month".to_owned())
            }
            "weekday" => {
                if let Some((day, nth)) = item.split_once('#') {
                    let day = self.value(day)? % 7;
                    return match nth {
                        "1" | "2" | "3" | "4" | "5" => Ok(Some(format!("{day}#{nth}"))),
                        _ => Err(format!("a month has weekdays #1 to #5, not `#{nth}`")),
                    };
                }
                match item.strip_suffix('L') {
                    Some(day) => self.value(day).map(|day| Some(format!("{}L", day % 7))),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn range(&self, range: &str) -> Result<String, String> {
        if range == "*" {
            return Ok(range.to_owned());
        }
        let Some((low, high)) = range.split_once('-') else {
            return self.value(range).map(|value| value.to_string());
        };
        let (first, last) = (self.value(low)?, self.value(high)?);
        // A range may end on Sunday, which then is 7.
        let last = if high == "SUN" && first > 0 { 7 } else { last };
        if first > last {
            return Err(format!(
                "the range {low}-{high} runs backwards: write it as two, `{low}-…,…-{high}`"
            ));
        }
        Ok(format!("{first}-{last}"))
    }

    fn value(&self, text: &str) -> Result<u16, String> {
        let named = self.names.iter().position(|name| *name == text).and_then(|at| u16::try_from(at).ok());
        if let Some(at) = named {
            return Ok(at + self.low);
        }
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u16>() {
            Ok(value) if digits && (self.low..=self.high).contains(&value) => Ok(value),
            _ if digits => Err(format!("{} {text} is outside {}–{}", self.name, self.low, self.high)),
            _ => Err(format!("`{text}` is no {}", self.name)),
        }
    }
}

/// The words of a text, and where each begins.
fn words(text: &str) -> Vec<(usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_fault_is_named_where_it_stands() {
        for (text, span, reason) in [
            ("0 25 * * *", 2..4, "hour 25 is outside 0–23"),
            ("60 2 * * *", 0..2, "minute 60 is outside 0–59"),
            ("0 2 * * 8", 8..9, "weekday 8 is outside 0–7"),
            ("0 2 0 * *", 4..5, "day 0 is outside 1–31"),
            ("0 2 * * MON,FRY", 12..15, "`FRY` is no weekday"),
            ("0 2 1,,2 * *", 6..6, "an item of the day list is empty"),
            ("MON 2 * * *", 0..3, "`MON` is no minute"),
            ("*/90 * * * *", 0..4, "a minute can step by 1 to 59, not by 90"),
            ("*/0 * * * *", 0..3, "a minute can step by 1 to 59, not by 0"),
            ("5/15 * * * *", 0..4, "a step needs a range: write `5-59/15` or `*/15`"),
            ("0 22-2 * * *", 2..6, "the range 22-2 runs backwards: write it as two, `22-…,…-2`"),
            ("0 0 * * MON#6", 8..13, "a month has weekdays #1 to #5, not `#6`"),
            ("0 0 32W * *", 4..7, "day 32 is outside 1–31"),
            ("0 0 * * L", 8..9, "`L` follows a weekday: `5L` is the last Friday of a month"),
            ("0 0 30 2 *", 0..10, "there is no such date, so it would never tick"),
            ("0 2 * *", 0..7, "it has 4 fields; a pattern has 5, or 6 with seconds first"),
            ("0 0 2 * * * 2026", 12..16, "there is no field for a year"),
            ("hourly", 0..6, "it is neither a cron pattern nor `every` with a length"),
            ("@reboot", 0..7, "it is not one of the nicknames"),
        ] {
            let error = CronPattern::parse(text).unwrap_err();
            assert_eq!((error.span(), error.reason()), (span, reason), "{text}");
        }
    }

    #[test]
    fn sunday_is_0_and_7_and_sun_in_every_place() {
        let monday = jiff::civil::date(2026, 6, 1).at(0, 0, 0, 0);
        let days = |pattern: &str| {
            let pattern = CronPattern::parse(pattern).unwrap();
            let ticks = std::iter::successors(pattern.after(monday), |wall| pattern.after(*wall));
            ticks.take(3).map(DateTime::day).collect::<Vec<_>>()
        };
        for (same, expected) in [
            (["0 2 * * 0", "0 2 * * 7", "0 2 * * sun", "0 2 * * SUN-SUN"], [7, 14, 21]),
            (["0 2 * * 0L", "0 2 * * 7L", "0 2 * * SUNL", "0 2 * * 7L,SUNL"], [28, 26, 30]),
            (["0 2 * * 0#1", "0 2 * * 7#1", "0 2 * * SUN#1", "0 2 * 1-12 SUN#1"], [7, 5, 2]),
            (["0 2 * * 6-7", "0 2 * * SAT-SUN", "0 2 * * 6,0", "0 2 * * sat,7"], [6, 7, 13]),
        ] {
            for pattern in same {
                assert_eq!(days(pattern), expected, "{pattern}");
            }
        }
        assert_eq!(days("0 2 * * SUN-TUE"), [1, 2, 7]);
        assert_eq!(days("0 2 * * MON-FRI,7L"), [1, 2, 3], "and the last Sunday too");
        assert!(CronPattern::parse("0 2 * * FRI-MON").is_err());
    }

    #[test]
    fn a_pattern_with_a_star_in_its_time_is_an_interval() {
        for (text, fixed) in [
            ("0 2 * * *", true),
            ("15,45 2 * * *", true),
            ("0-59/15 1-3/2 * * *", true),
            ("0 * * * *", false),
            ("*/30 2 * * *", false),
            ("30 0 2 * * *", true),
            ("*/10 0 2 * * *", false),
            ("@hourly", false),
            ("@daily", true),
        ] {
            assert_eq!(CronPattern::parse(text).unwrap().is_fixed(), fixed, "{text}");
        }
    }

    /// Items that are mostly right, so that the fields behind a fault are reached too.
    fn almost_cron() -> impl Strategy<Value = String> {
        let item = "(\\*|[0-9]{1,2}|[0-9]{1,2}-[0-9]{1,2})(/[0-9]{1,2})?|L|LW|[0-9]{1,2}W|[0-7]L|MON#[0-6]|SUN|JAN-MAR|\\?";
        let field = proptest::collection::vec(item, 1..3).prop_map(|items| items.join(","));
        proptest::collection::vec(field, 4..8).prop_map(|fields| fields.join(" "))
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[ 0-9*/,#LW@a-zA-Z-]{0,30}") {
            let _ = CronPattern::parse(&text);
        }

        #[test]
        fn croner_accepts_what_passes_here(text in almost_cron()) {
            if let Err(error) = CronPattern::parse(&text) {
                prop_assert!(!error.reason().to_lowercase().contains("component"), "{}", error);
                prop_assert!(!error.reason().to_lowercase().contains("pattern must"), "{}", error);
            }
        }
    }
}
