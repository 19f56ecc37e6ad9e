//! Cron patterns: read strictly, with the position of each fault, and searched on a calendar without jumps.

use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::calendar::{self, Dates, FieldValues, Times};
use super::field::FIELDS;
use super::pattern_fault::{PatternFault, Remedy, place};
use super::{elsewhere, in_words};
use crate::ParseError;

/// A pattern that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronPattern {
    pub(super) dates: Dates,
    pub(super) times: Times,
    fixed: bool,
}

pub(super) const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl CronPattern {
    /// Reads a pattern or a nickname; the error has advice.
    pub(super) fn parse(text: &str) -> Result<CronPattern, ParseError> {
        Self::read(text).map_err(|fault| fault.explain(text))
    }

    /// Reads a pattern or a nickname.
    pub(super) fn read(text: &str) -> Result<CronPattern, PatternFault> {
        let name = text.trim();
        match NICKNAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, pattern)) => Self::read_fields(pattern),
            None if name.starts_with('@') => {
                Err(PatternFault::whole(text, "it is not one of the nicknames", Remedy::None))
            }
            None => Self::read_fields(text),
        }
    }

    fn read_fields(text: &str) -> Result<CronPattern, PatternFault> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (words, year) = match words.as_slice() {
            [fields @ .., year] if fields.len() == 6 => (fields, Some(year)),
            fields => (fields, None),
        };
        let (seconds, minute, hour, day, month, weekday) = match words {
            [minute, hour, day, month, weekday] => (None, minute, hour, day, month, weekday),
            [second, minute, hour, day, month, weekday] => (Some(second), minute, hour, day, month, weekday),
            _ => return Err(wrong_count(text, words)),
        };
        if year.is_some_and(|year| elsewhere::is_year(year)) && elsewhere::counts_weekdays(weekday) {
            let reason = "patterns with a year come from systems that number weekdays differently".to_owned();
            return Err(PatternFault { span: place(text, weekday), reason, remedy: Remedy::NameWeekdays });
        }
        let [of_seconds, of_minutes, of_hours, of_days, of_months, of_weekdays] = &FIELDS;
        let times = Times {
            seconds: match seconds {
                Some(second) => of_seconds.read(text, second)?,
                None => FieldValues::only(0),
            },
            minutes: of_minutes.read(text, minute)?,
            hours: of_hours.read(text, hour)?,
        };
        let dates = Dates {
            days: of_days.read(text, day)?,
            months: of_months.read(text, month)?,
            weekdays: of_weekdays.read(text, weekday)?,
        };
        if let Some(year) = year.filter(|year| **year != "*") {
            let reason = "a pattern has no field for the year".to_owned();
            return Err(PatternFault { span: place(text, year), reason, remedy: Remedy::NoYear });
        }
        let fixed = !seconds.into_iter().chain([minute, hour]).any(|word| word.contains('*'));
        let pattern = CronPattern { dates, times, fixed };
        if pattern.at_or_after(jiff::civil::date(2000, 1, 1).at(0, 0, 0, 0)).is_none() {
            return Err(PatternFault::whole(
                text,
                "there is no such date, so it would never tick",
                Remedy::None,
            ));
        }
        Ok(pattern)
    }

    /// Whether it names times of day, as against "every so often".
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    pub(super) fn words(&self) -> String {
        in_words::of(self)
    }

    pub(super) fn after(&self, wall: DateTime) -> Option<DateTime> {
        self.search_on(whole(wall).checked_add(SECOND).ok()?)
    }

    pub(super) fn at_or_after(&self, wall: DateTime) -> Option<DateTime> {
        if whole(wall) == wall { self.search_on(wall) } else { self.after(wall) }
    }

    pub(super) fn before(&self, wall: DateTime) -> Option<DateTime> {
        if whole(wall) == wall {
            self.search_back(wall.checked_sub(SECOND).ok()?)
        } else {
            self.at_or_before(wall)
        }
    }

    pub(super) fn at_or_before(&self, wall: DateTime) -> Option<DateTime> {
        self.search_back(whole(wall))
    }

    fn search_on(&self, wall: DateTime) -> Option<DateTime> {
        calendar::at_or_after(&self.dates, &self.times, wall)
    }

    fn search_back(&self, wall: DateTime) -> Option<DateTime> {
        calendar::at_or_before(&self.dates, &self.times, wall)
    }
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The second that contains a wall time.
fn whole(wall: DateTime) -> DateTime {
    wall.with().subsec_nanosecond(0).build().unwrap_or(wall)
}

fn wrong_count(text: &str, words: &[&str]) -> PatternFault {
    let reason = match words.len() {
        0 => "it is empty".to_owned(),
        1 => "it is neither a cron pattern nor `every` with a length".to_owned(),
        count => format!("it has {count} fields; a pattern has 5, or 6 with seconds first"),
    };
    PatternFault::whole(text, reason, Remedy::Order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schedule;
    use proptest::prelude::*;

    const COUNTED: &str = "patterns with a year come from systems that number weekdays differently";

    #[test]
    fn each_fault_is_reported_with_its_position() {
        for (text, span, reason) in [
            ("0 25 * * *", 2..4, "hour 25 is outside 0–23"),
            ("60 2 * * *", 0..2, "minute 60 is outside 0–59"),
            ("0 2 * * 8", 8..9, "weekday 8 is outside 0–7"),
            ("0 2 0 * *", 4..5, "day 0 is outside 1–31"),
            ("0 2 * * MON,FRY", 12..15, "`FRY` is not a weekday"),
            ("0 9 * * MON-FRY", 12..15, "`FRY` is not a weekday"),
            ("0 2 1,,2 * *", 5..7, "an item of the day list is empty"),
            ("0,,30 * * * *", 1..3, "an item of the minute list is empty"),
            (",30 * * * *", 0..1, "an item of the minute list is empty"),
            ("0 2, * * *", 3..4, "an item of the hour list is empty"),
            ("MON 2 * * *", 0..3, "`MON` is not a minute"),
            ("0 x * * *", 2..3, "`x` is not an hour"),
            ("*/90 * * * *", 0..4, "a minute can step by 1 to 59, not by 90"),
            ("0 */24 * * *", 2..6, "an hour can step by 1 to 23, not by 24"),
            ("*/+5 * * * *", 0..4, "`+5` is not a number of minutes to step by"),
            ("*/ * * * *", 0..2, "a number of minutes is missing after the `/`"),
            ("2/3/5 * * * *", 0..5, "an item has one step, not two"),
            ("0 0 * * */7", 8..11, "a weekday can step by 1 to 6, not by 7"),
            ("*/0 * * * *", 0..3, "a minute can step by 1 to 59, not by 0"),
            ("/5 * * * *", 0..2, "a range is missing before the `/`"),
            ("-5 * * * *", 0..2, "a minute is missing before the `-`"),
            ("5- * * * *", 0..2, "a minute is missing after the `-`"),
            ("0 - * * *", 2..3, "an hour is missing on both sides of the `-`"),
            ("0 0 * * 1-5-7", 8..13, "a range has two ends, not more"),
            ("0 22-2 * * *", 2..6, "the range 22-2 runs backwards"),
            ("0 0 * * MON#6", 8..13, "a month has weekdays #1 to #5, not `#6`"),
            ("0 0 * * #2", 8..10, "`#` follows one weekday: `MON#2` is the second Monday of a month"),
            ("0 0 * * MON-FRI#1", 8..17, "`#` follows one weekday: `MON#2` is the second Monday of a month"),
            ("0 0 32W * *", 4..6, "day 32 is outside 1–31"),
            ("0 0 W * *", 4..5, "`W` follows one day: `15W` is the working day nearest to the 15th"),
            ("0 0 L-31 * *", 4..8, "days before the last one are `L-1` to `L-30`, not `L-31`"),
            ("0 0 * * L", 8..9, "`L` follows a weekday: `5L` is the last Friday of a month"),
            ("0 0 1 * +MON", 8..12, "`+MON` is not a weekday"),
            ("0 ? * * *", 2..3, "`?` stands for any day or weekday, not for an hour"),
            ("0 0 1,? * *", 6..7, "`?` must be alone in its field"),
            ("0 0 30 2 *", 0..10, "there is no such date, so it would never tick"),
            ("0 2 * *", 0..7, "it has 4 fields; a pattern has 5, or 6 with seconds first"),
            ("  0 2 * * ", 2..9, "it has 4 fields; a pattern has 5, or 6 with seconds first"),
            ("0 0 2 * * * 2026", 12..16, "a pattern has no field for the year"),
            ("0 0 12 ? * 2-6 *", 11..14, COUNTED),
            ("0 15 10 ? * 6L 2026-2028", 12..14, COUNTED),
            ("0 0 12 ? * 6-2 *", 11..14, COUNTED),
            ("0 0 12 ? * 2#1 *", 11..14, COUNTED),
            ("", 0..0, "it is empty"),
            ("sometimes", 0..9, "it is neither a cron pattern nor `every` with a length"),
        ] {
            let error = CronPattern::parse(text).unwrap_err();
            assert_eq!((error.span(), error.reason()), (span, reason), "{text}");
        }
    }

    #[test]
    fn if_the_meaning_is_clear_the_right_text_is_proposed() {
        for (text, help) in [
            ("0 22-2 * * *", "write \"0 22-23,0-2 * * *\""),
            ("0 0 * * FRI-MON", "write \"0 0 * * FRI-SUN,MON\""),
            ("0 0 * * 5-1", "write \"0 0 * * 5-7,1\""),
            ("0 0 * * 5-0", "write \"0 0 * * 5-7\""),
            ("0 0 * * 7-2", "write \"0 0 * * 0-2\""),
            ("0 0 1 NOV-MAR *", "write \"0 0 1 NOV-DEC,JAN-MAR *\""),
            ("0 22-2 * * SAT-TUE", "write \"0 22-23,0-2 * * SAT-SUN,MON-TUE\""),
            ("0 22-2 32 * *", "write `22-23,0-2`"),
            ("0 22-2/2 * * *", "write \"0 22,0,2 * * *\""),
            ("0 0 * * SAT-MON/2", "write \"0 0 * * 6,1\""),
            ("*/60 * * * *", "write \"0 * * * *\""),
            ("0 */24 * * *", "write \"0 0 * * *\""),
            ("0/60 * * * *", "write \"0 * * * *\""),
            ("*/90 * * * *", "for ticks that far apart write \"every 90m\""),
            ("0 */36 * * *", "for ticks that far apart write \"every 36h\""),
            ("0 0 * * */7", "write \"0 0 * * SUN\""),
            ("0 0 1-7 * */7", "write \"0 0 * * SUN#1\""),
            ("0 0 * * Monday", "write \"0 0 * * MON\""),
            ("0 0 * * monday-fri", "write \"0 0 * * MON-fri\""),
            ("0 0 1 January *", "write \"0 0 1 JAN *\""),
            ("0 0 25-L * *", "write \"0 0 25-31 * *\""),
            ("0 0 * * FRI#L", "write \"0 0 * * FRIL\""),
            ("0 0 * * L5", "write \"0 0 * * 5L\""),
            ("0,,30 * * * *", "write \"0,30 * * * *\""),
            ("/5 * * * *", "write \"*/5 * * * *\""),
            ("0 ? * * *", "write \"0 * * * *\""),
            ("0 0 12 ? * MON-FRI 2026", "without a year it ticks in every year: \"0 0 12 ? * MON-FRI\""),
            ("0 15 10 ? * 6L 2026-2028", elsewhere::NAME_WEEKDAYS),
            ("0 0 12 ? * 2-6 *", elsewhere::NAME_WEEKDAYS),
            ("0 0 12 ? * MON#2 2026", "without a year it ticks in every year: \"0 0 12 ? * MON#2\""),
            ("MON 2 * * *", super::super::pattern_fault::ORDER),
            ("0 2 * *", super::super::pattern_fault::ORDER),
        ] {
            assert_eq!(CronPattern::parse(text).unwrap_err().advice(), Some(help), "{text}");
        }
        for text in [
            "0 25 * * *",
            "0 0 * * MON#6",
            "0 0 30 2 *",
            "*/90 9-17 * * *",
            "0 0 10-17 * */7",
            "0 0 */31 * MON",
            "0 0 25-5/3 * *",
            "0 0 1-7 * */7,3",
            "0 0 1-7 * 1/7",
            "0 0 1,? * MON",
        ] {
            assert_eq!(CronPattern::parse(text).unwrap_err().advice(), None, "{text}");
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
            ("0/15 1/2 * * *", true),
            ("0 0/2 * * *", true),
            ("0/15 * * * *", false),
            ("0 * * * *", false),
            ("*,30 2 * * *", false),
            ("*/30 2 * * *", false),
            ("30 0 2 * * *", true),
            ("*/10 0 2 * * *", false),
            ("0 0 2 * * ? *", true),
            ("0 0 2 ? * MON#1 *", true),
            ("0 0 2 ? * */2 *", true),
            ("@hourly", false),
            ("@daily", true),
        ] {
            assert_eq!(CronPattern::parse(text).unwrap().is_fixed(), fixed, "{text}");
        }
    }

    #[test]
    fn the_same_set_can_be_written_in_several_ways() {
        for (text, same) in [
            ("5/15 * * * *", "5-59/15 * * * *"),
            ("0 0/6 * * *", "0 0-23/6 * * *"),
            ("0 0 3/7 FEB/5 *", "0 0 3-31/7 2-12/5 *"),
            ("0 0 * * MON/2", "0 0 * * 1-7/2"),
            ("0 0 * * */1", "0 0 * * *"),
            ("*,0 * * * *", "* * * * *"),
            ("0 0 * * *,0", "0 0 * * *"),
            ("  0\t0  *  * * ", "0 0 * * *"),
            ("0 0 l * mon", "0 0 L * MON"),
            (" @Daily ", "0 0 * * *"),
            ("0 30 2 ? * mon-fri *", "0 30 2 * * 1-5"),
        ] {
            let (one, other) = (CronPattern::parse(text).unwrap(), CronPattern::parse(same).unwrap());
            let sets = |pattern: &CronPattern| {
                let CronPattern { dates, times, .. } = pattern.clone();
                [times.seconds, times.minutes, times.hours, dates.days, dates.months, dates.weekdays]
                    .map(|values| (values.set, values.floating))
            };
            assert_eq!(sets(&one), sets(&other), "{text}");
        }
    }

    /// Items that are mostly right, so that the fields behind a fault are reached too.
    fn almost_cron() -> impl Strategy<Value = String> {
        let item = "(\\*|[0-9]{1,2}|[0-9]{1,2}-[0-9]{1,2})(/[0-9]{1,2})?|[1-9]|[1-9]|\\*|L|LW|L-[0-9]{1,2}W?|[0-9]{1,2}W|[0-7]L|MON#[0-6L]|SUN|Monday|FRI-MON|JAN-MAR|\\?|H|H/5|[-/,#WL+]{1,3}";
        let field = proptest::collection::vec(item, 1..3).prop_map(|items| items.join(","));
        proptest::collection::vec(field, 1..9).prop_map(|fields| fields.join(" "))
    }

    /// Every quoted text in an advice.
    fn quoted(help: &str) -> Vec<String> {
        help.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[ 0-9*/,#LW@a-zA-Z-]{0,30}") {
            let _ = Schedule::parse(&text);
        }

        #[test]
        fn the_proposal_of_an_error_is_accepted(
            text in prop_oneof![almost_cron(), "[HL0-9*/,#@() -]{1,24}", "(TZ=UTC |@daily |cron\\()?[0-9] [0-9?] [0-9*?] [1-9*] [1-6?*]( \\*| root| # x)?( /bin/x)?\\)?"]
        ) {
            let Err(error) = Schedule::parse(&text) else { return Ok(()) };
            prop_assert!(!error.span().is_empty() || text.trim().is_empty(), "{}", error);
            prop_assert!(!error.reason().contains("``"), "{}", error);
            let Some(help) = error.advice() else { return Ok(()) };
            prop_assert!(!help.contains("``"), "{}", error);
            let help = help.replace("timezone = \"UTC\"", "");
            for proposal in quoted(&help) {
                prop_assert!(Schedule::parse(&proposal).is_ok(), "{} proposes {}", error, proposal);
            }
            if let Some(item) = help.strip_prefix("write `").and_then(|rest| rest.strip_suffix('`')) {
                let mut mended = text.clone();
                mended.replace_range(error.span(), item);
                let next = CronPattern::read(&mended).unwrap_err();
                let here = error.span().start..error.span().start + item.len();
                let overlaps = next.span.start < here.end && here.start < next.span.end;
                prop_assert!(!overlaps || next.span == place(&mended, mended.trim()), "{}", error);
            }
        }
    }
}
