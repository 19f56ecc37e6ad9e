//! Lengths of time as people write them: `30s`, `15m`, `1h30m`, `400d`, and ranges such as `30s..1h`.
//!
//! A day is 24 hours and a week is 7 of those: a length has no zone. What must follow the calendar (a day of 23 hours, a
//! month) is a `Grid`, not a length. Months and years are refused for that reason.

use std::ops::Range;
use std::time::Duration;

use crate::ParseError;

/// The longest length (100 years of 365 days); anything longer is a typing error.
pub const LONGEST: Duration = Duration::from_secs(100 * 365 * DAY);

const WHAT: &str = "duration";
const DAY: u64 = 86_400;
const UNITS: [(&str, u64); 5] = [("w", 7 * DAY), ("d", DAY), ("h", 3_600), ("m", 60), ("s", 1)];

/// Reads a length such as `15m` or `1h30m`: whole numbers, units `w d h m s` from large to small, each once.
///
/// ```
/// use std::time::Duration;
/// use refrain_core::duration;
///
/// assert_eq!(duration::parse("1h30m")?, Duration::from_secs(5_400));
/// assert_eq!(duration::parse("0")?, Duration::ZERO);
/// let error = duration::parse("15 min").unwrap_err();
/// assert_eq!(error.reason(), "` min` is not a valid unit of time");
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
pub fn parse(text: &str) -> Result<Duration, ParseError> {
    let advice = "write numbers and units from large to small: w d h m s, as in \"15m\" or \"1h30m\"";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if text.is_empty() {
        return Err(ParseError::whole(WHAT, text, "it is empty").help(advice));
    }
    let mut seconds: u64 = 0;
    let mut larger_unit = u64::MAX;
    let mut at = 0;
    while at < text.len() {
        let number = run_of(text, at, |c| c.is_ascii_digit());
        let unit = run_of(text, number.end, |c| !c.is_ascii_digit());
        let fault =
            |span: Range<usize>, reason: String| ParseError::new(WHAT, text, span, reason).help(advice);
        let (digits, name) = (slice(text, &number), slice(text, &unit));
        if digits.is_empty() {
            return Err(fault(unit.clone(), format!("a number is missing before `{name}`")));
        }
        if name.is_empty() {
            return Err(fault(number.clone(), format!("`{digits}` has no unit")));
        }
        let Some((_, size)) = UNITS.iter().find(|(known, _)| *known == name) else {
            return Err(fault(unit.clone(), format!("`{name}` is not a valid unit of time")));
        };
        if *size >= larger_unit {
            return Err(fault(
                unit.clone(),
                format!("`{name}` must come before the smaller units, and once"),
            ));
        }
        let added = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(*size));
        seconds = match added.and_then(|more| seconds.checked_add(more)) {
            Some(sum) if sum <= LONGEST.as_secs() => sum,
            _ => return Err(fault(number, "it is longer than 100 years".to_owned())),
        };
        larger_unit = *size;
        at = unit.end;
    }
    Ok(Duration::from_secs(seconds))
}

/// Reads a range such as `30s..1h`, both ends included; the first may not exceed the second.
pub fn parse_range(text: &str) -> Result<(Duration, Duration), ParseError> {
    let advice = "write the first delay and the longest one, as in \"30s..1h\"";
    let Some((low, high)) = text.split_once("..") else {
        return Err(ParseError::whole("range of durations", text, "it does not contain `..`").help(advice));
    };
    let inside = |part: &str, offset: usize| {
        parse(part).map_err(|error| error.inside("range of durations", text, offset))
    };
    let (low, high) = (inside(low, 0)?, inside(high, low.len() + 2)?);
    if low > high {
        return Err(ParseError::whole("range of durations", text, "it ends before it begins").help(advice));
    }
    Ok((low, high))
}

/// Writes a length in the form that [`parse`] reads; parts of a second are dropped.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(refrain_core::duration::format(Duration::from_secs(90_061)), "1d1h1m1s");
/// assert_eq!(refrain_core::duration::format(Duration::ZERO), "0s");
/// ```
pub fn format(length: Duration) -> String {
    let mut rest = length.as_secs();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    // Weeks mixed with other units are hard to read, so 10 days stay `10d`.
    let units = if rest.is_multiple_of(7 * DAY) { &UNITS[..] } else { &UNITS[1..] };
    for (name, size) in units {
        if rest >= *size {
            text.push_str(&(rest / size).to_string());
            text.push_str(name);
            rest %= size;
        }
    }
    text
}

fn run_of(text: &str, from: usize, belongs: impl Fn(char) -> bool) -> Range<usize> {
    let rest = slice(text, &(from..text.len()));
    let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    from..from + length
}

fn slice<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, seconds) in
            [("30s", 30), ("15m", 900), ("1h", 3_600), ("1h30m", 5_400), ("3d", 259_200), ("2w", 1_209_600)]
        {
            assert_eq!(parse(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
    }

    #[test]
    fn each_fault_is_reported_with_its_position() {
        for (text, span, reason) in [
            ("", 0..0, "it is empty"),
            ("15", 0..2, "`15` has no unit"),
            ("m", 0..1, "a number is missing before `m`"),
            ("15x", 2..3, "`x` is not a valid unit of time"),
            ("1month", 1..6, "`month` is not a valid unit of time"),
            ("-5m", 0..1, "a number is missing before `-`"),
            ("1.5h", 1..2, "`.` is not a valid unit of time"),
            ("1m1h", 3..4, "`h` must come before the smaller units, and once"),
            ("1h1h", 3..4, "`h` must come before the smaller units, and once"),
            ("36501d", 0..5, "it is longer than 100 years"),
            ("99999999999999999999w", 0..20, "it is longer than 100 years"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.span(), error.reason()), (span, reason), "{text}");
        }
    }

    #[test]
    fn a_range_points_at_its_bad_end() {
        assert_eq!(parse_range("30s..1h").unwrap(), (Duration::from_secs(30), Duration::from_hours(1)));
        assert_eq!(parse_range("30s..1x").unwrap_err().span(), 6..7);
        assert_eq!(parse_range("1h..30s").unwrap_err().reason(), "it ends before it begins");
        assert_eq!(parse_range("1h").unwrap_err().reason(), "it does not contain `..`");
    }

    proptest! {
        #[test]
        fn a_printed_duration_can_be_parsed(seconds in 0..=LONGEST.as_secs()) {
            let length = Duration::from_secs(seconds);
            prop_assert_eq!(parse(&format(length)).unwrap(), length);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[0-9wdhms.]{0,12}") {
            let _ = (parse(&text), parse_range(&text));
        }
    }
}
