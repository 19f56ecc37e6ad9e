//! Lists and ranges with blanks in them: `0, 30 * * * *`, `0 9 * * MON - FRI`.
//!
//! Fields end at blanks, so such a text has too many fields, and its fields may have another meaning: without the comma
//! `0, 30 * * * *` would be a pattern with seconds. The proposal has exactly the same characters without the blanks.

use super::super::field::{MONTHS, WEEKDAYS, is_digits};
use super::{fault, is_readable};
use crate::ParseError;

/// The same text without the blanks, if that is a valid schedule.
pub(super) fn torn(text: &str, words: &[&str]) -> Option<ParseError> {
    let first = words.iter().find(|word| is_end(word))?;
    let joined = joined(words);
    let reason = if first.contains(',') {
        "a list must not have blanks around its commas"
    } else {
        "a range must not have blanks around its dash"
    };
    (joined != words.join(" ") && is_readable(&joined))
        .then(|| fault(text, first, reason).help(format!("write \"{joined}\"")))
}

/// Whether a list may contain blanks: then no proposal leaves a comma out.
pub(in super::super) fn is_torn(text: &str) -> bool {
    text.split_whitespace().any(|word| word.starts_with(',') || word.ends_with(','))
}

/// Whether a word is an end of a list of values, and not a word of a command.
pub(super) fn is_part(word: &str) -> bool {
    let is_named = |part: &str| {
        let mut names = MONTHS.iter().chain(&WEEKDAYS);
        names.any(|name| name.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(part)))
    };
    let values = word.trim_matches(',');
    values.len() < word.len()
        && values
            .split([',', '-', '/'])
            .all(|part| part == "*" || part.is_empty() || is_digits(part) || is_named(part))
}

fn is_end(word: &str) -> bool {
    word.starts_with([',', '-']) || word.ends_with([',', '-'])
}

fn joined(words: &[&str]) -> String {
    let mut joined = String::new();
    for word in words {
        if !joined.is_empty() && !joined.ends_with([',', '-']) && !word.starts_with([',', '-']) {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Schedule;
    use crate::schedule::pattern_fault::ORDER;

    fn advice(text: &str) -> Option<String> {
        Schedule::parse(text).unwrap_err().advice().map(str::to_owned)
    }

    #[test]
    fn a_list_with_blanks_is_proposed_without_them_or_not_at_all() {
        for (text, mended) in [
            ("0, 30 * * * *", "0,30 * * * *"),
            ("0 ,30 * * * *", "0,30 * * * *"),
            ("0 , 30 9 * * *", "0,30 9 * * *"),
            ("0 5 * * MON, WED", "0 5 * * MON,WED"),
            ("0 5 * * MON, WED, FRI", "0 5 * * MON,WED,FRI"),
            ("0 5 1 - 5 * *", "0 5 1-5 * *"),
            ("0 5 * * MON -FRI", "0 5 * * MON-FRI"),
            ("0 0 5 1, 15 * *", "0 0 5 1,15 * *"),
        ] {
            assert_eq!(advice(text), Some(format!("write \"{mended}\"")), "{text}");
        }
        for text in
            ["0, 30 * * *", "0 2, * * *", "0,, 30 * * * *", "0, 12 * * *", ",5 * * * *", "0 18 ? * MON ,"]
        {
            assert_eq!(advice(text), None, "{text}");
        }
        assert_eq!(advice("0 0 * 1 MON ,FRI 0").as_deref(), Some(ORDER));
        let behind = "write \"0 5 * * *\", and the command as another key of the job file";
        assert_eq!(advice("0 5 * * * root echo one, two").as_deref(), Some(behind));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_proposal_for_a_list_with_blanks_has_the_same_characters(
            fields in proptest::collection::vec("[0-5]|\\*|[0-5] ?[,-] ?[6-9]|MON ?[,-] ?FRI|[1-4],", 4..8),
        ) {
            let text = fields.join(" ");
            let is_torn = text.split(' ').any(|word| word.starts_with(',') || word.ends_with(','));
            let error = match Schedule::parse(&text) {
                Err(error) if is_torn => error,
                _ => return Ok(()),
            };
            let Some(help) = error.advice().filter(|help| *help != ORDER) else { return Ok(()) };
            let letters = |text: &str| text.replace(' ', "");
            let proposed = help.split('"').nth(1).unwrap_or_default();
            prop_assert_eq!(letters(proposed), letters(&text), "{}", error);
        }
    }
}
