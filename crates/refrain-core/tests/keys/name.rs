//! Names of jobs, projects and scopes.

use proptest::prelude::*;
use refrain_core::{JobName, ProjectName, Scope};

/// The rule for a name, in bytes.
fn is_name(text: &str) -> bool {
    let outer = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let inner = b"abcdefghijklmnopqrstuvwxyz0123456789-_";
    match text.as_bytes() {
        [] => false,
        [only] => outer.contains(only),
        [first, middle @ .., last] => {
            outer.contains(first)
                && outer.contains(last)
                && middle.len() <= 62
                && middle.iter().all(|byte| inner.contains(byte))
        }
    }
}

proptest! {
    #[test]
    fn f37_any_name_gets_the_verdict_of_the_rule(
        text in prop_oneof![any::<String>(), "[a-c0-9_ A-B-]{0,6}", "[a-z]{60,68}", "[a-z]{62}[é-]{1,2}"]
    ) {
        prop_assert_eq!(JobName::parse(&text).is_ok(), is_name(&text));
        prop_assert_eq!(ProjectName::parse(&text).is_ok(), is_name(&text));
    }

    #[test]
    fn a_name_that_is_suggested_is_taken(text in "[a-cA-C _./é-]{0,6}") {
        let advice = JobName::parse(&text).err().and_then(|error| error.advice().map(str::to_owned));
        if let Some(suggested) = advice.as_deref().and_then(|advice| advice.strip_prefix("write `")) {
            prop_assert!(is_name(suggested.trim_end_matches('`')), "{}", suggested);
        }
    }

    #[test]
    fn f37_any_scope_gets_the_verdict_of_the_rule(text in prop_oneof![any::<String>(), "[a-cé]{120,260}"]) {
        let control = |c: char| matches!(u32::from(c), 0..=0x1f | 0x7f..=0x9f | 0x2028 | 0x2029);
        prop_assert_eq!(Scope::parse(&text).is_ok(), text.len() <= 256 && !text.contains(control));
    }
}

#[test]
fn a_name_is_never_a_path_and_never_an_option() {
    for text in
        ["", "..", "../etc", "a/b", "a.toml", "-rf", "--again", "a-", "_a", "a@b", "a#1", "größe", "a\0"]
    {
        assert!(JobName::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn f37_the_limits_count_bytes() {
    assert!(JobName::parse(&"j".repeat(64)).is_ok());
    assert!(JobName::parse(&"j".repeat(65)).is_err());
    assert!(Scope::parse(&"é".repeat(128)).is_ok());
    assert!(Scope::parse(&("s".to_owned() + &"é".repeat(128))).is_err());
}

#[test]
fn a_wrong_name_is_answered_with_a_right_one() {
    assert_eq!(
        JobName::parse("Revenue Daily").unwrap_err().to_string(),
        "cannot read the job name\n  Revenue Daily\n  ^ 'R' is not allowed in a name\n  write `revenue-daily`"
    );
    assert_eq!(
        ProjectName::parse("shop/eu").unwrap_err().advice(),
        Some("a name is lower-case letters and digits, with `-` or `_` inside, as in `revenue-daily`")
    );
}

#[test]
fn names_print_as_they_were_read() {
    let job: JobName = "audit-digest_2".parse().unwrap();
    let project: ProjectName = "7shop".parse().unwrap();
    let scope: Scope = "acme / EU".parse().unwrap();
    assert_eq!(format!("{project} {job} {scope}"), "7shop audit-digest_2 acme / EU");
    assert_eq!(format!("{job:>16}|"), "  audit-digest_2|");
    assert!(JobName::parse("a-b").unwrap() < JobName::parse("a0").unwrap());
}
