//! A zone in the text of a schedule; zones have a key of their own.
//!
//! A zone is proposed only if it is the one in the text: a job that ticks in another zone than intended is noticed late. For
//! any other name the error of the zone is shown.

use super::{fault, is_readable};
use crate::ParseError;
use crate::zone::Zone;

const REASON: &str = "the time zone is a key of its own in the job file";

/// `CRON_TZ=America/New_York 0 5 * * *`.
pub(super) fn in_front(text: &str, words: &[&str]) -> Option<ParseError> {
    let first = words.first()?;
    let (name, zone) = first.split_once('=')?;
    if !["TZ", "CRON_TZ"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return None;
    }
    let zone = zone.trim_matches(['"', '\'']);
    let zone = zone.strip_prefix(':').unwrap_or(zone);
    let rest = words.get(1..).unwrap_or_default().join(" ");
    let pattern = is_readable(&rest).then_some(rest);
    let help = match (known(zone), pattern) {
        (Some(zone), Some(pattern)) => format!("write timezone = \"{zone}\" and schedule = \"{pattern}\""),
        (Some(zone), None) => format!("write it as timezone = \"{zone}\""),
        (None, pattern) => {
            let hint = Zone::parse(zone).err().and_then(|error| error.advice().map(str::to_owned));
            let hint = hint.filter(|advice| advice.starts_with("did you mean"));
            let hint = hint.map_or_else(String::new, |advice| format!("; {advice}"));
            let schedule =
                pattern.map_or_else(String::new, |pattern| format!(", and schedule = \"{pattern}\""));
            format!("write the name of the zone as timezone{schedule}{hint}")
        }
    };
    Some(fault(text, first, REASON).help(help))
}

/// `0 5 * * * Europe/Paris`.
pub(super) fn behind(text: &str, words: &[&str]) -> Option<ParseError> {
    let (last, fields) = words.split_last()?;
    let (zone, pattern) = (known(last)?, fields.join(" "));
    let help = format!("write timezone = \"{zone}\" and schedule = \"{pattern}\"");
    is_readable(&pattern).then(|| fault(text, last, REASON).help(help))
}

/// The zone of this name, ignoring case.
fn known(name: &str) -> Option<&'static str> {
    std::iter::once("UTC").chain(Zone::all()).find(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Schedule, Zone};

    fn advice(text: &str) -> String {
        Schedule::parse(text).unwrap_err().advice().unwrap_or_default().to_owned()
    }

    #[test]
    fn an_unknown_zone_is_not_replaced_by_another() {
        for (text, expected) in [
            (
                "CRON_TZ=europe/london 0 5 * * *",
                "write timezone = \"Europe/London\" and schedule = \"0 5 * * *\"",
            ),
            ("TZ=utc 0 5 * * *", "write timezone = \"UTC\" and schedule = \"0 5 * * *\""),
            (
                "TZ=:Europe/London 0 5 * * *",
                "write timezone = \"Europe/London\" and schedule = \"0 5 * * *\"",
            ),
            (
                "TZ=Europe/Lodon 0 5 * * *",
                "write the name of the zone as timezone, and schedule = \"0 5 * * *\"; did you mean \"Europe/London\"?",
            ),
            ("TZ=Middle-earth/Mordor 0 25 * * *", "write the name of the zone as timezone"),
            ("TZ=local 0 5 * * *", "write the name of the zone as timezone, and schedule = \"0 5 * * *\""),
            ("0 5 * * * Europe/Paris", "write timezone = \"Europe/Paris\" and schedule = \"0 5 * * *\""),
            ("0 5 * * * utc", "write timezone = \"UTC\" and schedule = \"0 5 * * *\""),
        ] {
            assert_eq!(advice(text), expected, "{text}");
        }
        let other = "TZ=GMT+1 0 5 * * *";
        assert!(!advice(other).contains("timezone ="), "{}", advice(other));
        assert!(!advice(other).contains("Berlin"), "{}", advice(other));
    }

    fn any_case(name: &str, upper: u64) -> String {
        let turned = name.chars().enumerate().map(|(at, letter)| match upper >> (at % 64) & 1 {
            1 => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        });
        turned.collect()
    }

    proptest! {
        #[test]
        fn a_proposed_zone_is_the_one_in_the_text(
            at in any::<prop::sample::Index>(),
            upper in any::<u64>(),
            other in "[A-Za-z/+0-9:-]{1,12}",
            is_known in any::<bool>(),
            colon in ":?",
        ) {
            let names: Vec<&str> = Zone::all().collect();
            let written = if is_known { any_case(at.get::<&str>(&names), upper) } else { other };
            for text in [format!("TZ={colon}{written} 0 5 * * *"), format!("0 5 * * * {written}")] {
                let Err(error) = Schedule::parse(&text) else { continue };
                let advice = error.advice().unwrap_or_default();
                let proposed = advice.split_once("timezone = \"").and_then(|(_, rest)| rest.split_once('"'));
                prop_assert_eq!(proposed.is_some(), proposed.is_some_and(|(zone, _)| {
                    zone.eq_ignore_ascii_case(written.trim_start_matches(':'))
                }), "{}: {}", &text, advice);
                prop_assert!(!is_known || proposed.is_some(), "{}: {}", &text, advice);
            }
        }
    }
}
