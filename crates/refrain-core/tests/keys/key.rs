//! Keys: parts never run together, unusual texts get one verdict, and errors say what to do.

use proptest::prelude::*;
use refrain_core::key::KEY_BYTES_MAX;
use refrain_core::{Fingerprint, JobName, Key, KeyError, KeyPart, Scope, key};

fn of_parts(parts: &[String]) -> Result<Key, KeyError> {
    Key::from_parts(&parts.iter().map(|part| part as &dyn KeyPart).collect::<Vec<_>>())
}

/// The rule for a key, in bytes.
fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=512).contains(&bytes.len())
        && bytes.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f)
        && bytes.windows(2).all(|pair| !(pair[0] == 0xc2 && (0x80..=0x9f).contains(&pair[1])))
        && bytes.windows(3).all(|three| three != [0xe2, 0x80, 0xa8] && three != [0xe2, 0x80, 0xa9])
}

/// Texts of any length near the limit, of ordinary characters and all those that the rule names.
fn odd_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        20 => prop::sample::select(vec!['a', ':', '%', 'é', '€', '😀', ' ', '\u{a0}', '\u{202e}']),
        1 => prop::sample::select(vec!['\0', '\n', '\u{1f}', '\u{7f}', '\u{80}', '\u{9f}']),
        1 => prop::sample::select(vec!['\u{2027}', '\u{2028}', '\u{2029}', '\u{202a}']),
        1 => any::<char>(),
    ];
    prop_oneof![
        any::<String>(),
        prop::collection::vec(character, 0..12).prop_map(String::from_iter),
        (505_usize..520, "[aé€😀]{0,3}").prop_map(|(length, end)| "k".repeat(length - end.len()) + &end),
    ]
}

proptest! {
    #[test]
    fn f37_any_text_gets_the_verdict_of_the_rule(text in odd_text()) {
        let key = Key::parse(&text);
        prop_assert_eq!(key.is_ok(), is_key(&text), "{:?}", key);
        if let Ok(key) = key {
            prop_assert_eq!(key.as_str(), text);
        }
    }

    #[test]
    fn f37_any_part_that_is_taken_makes_a_key_by_the_rule(parts in prop::collection::vec(odd_text(), 1..4)) {
        if let Ok(key) = of_parts(&parts) {
            prop_assert!(is_key(key.as_str()));
            prop_assert_eq!(Key::parse(key.as_str()), Ok(key));
        }
    }

    #[test]
    fn i13_a_key_tells_its_parts(parts in prop::collection::vec(odd_text(), 1..4)) {
        if let Ok(key) = of_parts(&parts) {
            let read: Vec<String> =
                key.as_str().split(':').map(|part| part.replace("%3A", ":").replace("%25", "%")).collect();
            prop_assert_eq!(read, parts);
        }
    }

    #[test]
    fn f36_two_lists_share_a_key_only_if_they_are_equal(
        one in prop::collection::vec("[:%3A25]{1,3}", 1..4),
        other in prop::collection::vec("[:%3A25]{1,3}", 1..4),
    ) {
        prop_assert_eq!(of_parts(&one).unwrap() == of_parts(&other).unwrap(), one == other);
    }

    #[test]
    fn keys_are_ordered_as_their_bytes(one in "[a-c:é😀\u{ffff}]{1,4}", other in "[a-c:é😀\u{ffff}]{1,4}") {
        let order = Key::parse(&one).unwrap().cmp(&Key::parse(&other).unwrap());
        prop_assert_eq!(order, one.as_bytes().cmp(other.as_bytes()));
    }

    #[test]
    fn a_number_and_its_decimal_text_are_the_same_part(number in any::<i64>()) {
        prop_assert_eq!(key!("invoice", number), key!("invoice", number.to_string()));
        prop_assert_eq!(key!("invoice", i128::from(number)), key!("invoice", &number));
    }
}

#[test]
fn f36_parts_never_run_together() {
    assert_ne!(key!("a:b", "c"), key!("a", "b:c"));
    assert_ne!(key!("a%3Ab"), key!("a:b"));
    assert_ne!(key!("a", "b"), key!("a:b"));
    assert_eq!(key!("a", "b").unwrap(), Key::parse("a:b").unwrap());
}

#[test]
fn f37_the_limit_counts_bytes_and_not_characters() {
    for (text, taken) in [
        ("k".repeat(512), true),
        ("k".repeat(513), false),
        ("é".repeat(256), true),
        ("k".to_owned() + &"é".repeat(256), false),
        ("😀".repeat(128), true),
        ("😀".repeat(128) + "k", false),
    ] {
        assert_eq!(Key::parse(&text).is_ok(), taken, "{} bytes", text.len());
        assert_eq!(key!(&text).is_ok(), taken, "{} bytes", text.len());
    }
}

#[test]
fn f37_the_limit_counts_the_escapes() {
    assert!(key!(":".repeat(170)).is_ok());
    assert_eq!(key!(":".repeat(171)), Err(KeyError::TooLong { bytes: 513 }));
    assert_eq!(KEY_BYTES_MAX, 512);
}

#[test]
fn f37_the_two_forms_of_an_accent_stay_two_keys() {
    assert_ne!(key!("caf\u{e9}"), key!("cafe\u{301}"));
}

#[test]
fn every_kind_of_part_reads_as_it_prints() {
    let content = Fingerprint::of_json("{}").unwrap();
    let (job, scope) = (JobName::parse("sync").unwrap(), Scope::parse("acme").unwrap());
    assert_eq!(
        key!(job, scope, true, -1_i8, u128::MAX).unwrap().as_str(),
        format!("sync:acme:true:-1:{}", u128::MAX)
    );
    assert_eq!(key!("row", content).unwrap().as_str(), format!("row:{content}"));
    assert_eq!(key!("a", String::from("b"), &&7_usize,).unwrap().as_str(), "a:b:7");
}

/// Whether a type can be part of a key: an inherent constant hides that of a trait, if its bound holds.
struct Asked<T>(std::marker::PhantomData<T>);

impl<T: KeyPart> Asked<T> {
    const IS_PART: bool = true;
}

trait Otherwise {
    const IS_PART: bool = false;
}

impl<T> Otherwise for Asked<T> {}

#[test]
fn m3_no_clock_and_no_float_can_be_part_of_a_key() {
    let refused = [
        Asked::<jiff::Timestamp>::IS_PART,
        Asked::<jiff::Zoned>::IS_PART,
        Asked::<jiff::civil::DateTime>::IS_PART,
        Asked::<jiff::civil::Date>::IS_PART,
        Asked::<jiff::civil::Time>::IS_PART,
        Asked::<std::time::SystemTime>::IS_PART,
        Asked::<std::time::Instant>::IS_PART,
        Asked::<std::time::Duration>::IS_PART,
        Asked::<f32>::IS_PART,
        Asked::<f64>::IS_PART,
        Asked::<Option<&str>>::IS_PART,
    ];
    let taken = [Asked::<&str>::IS_PART, Asked::<String>::IS_PART, Asked::<u64>::IS_PART];
    assert_eq!((refused, taken), ([false; 11], [true; 3]));
}

#[test]
fn an_error_says_which_part_why_and_what_to_do() {
    let output = |error: Result<Key, KeyError>| error.unwrap_err().to_string();
    assert_eq!(
        output(key!("invoice", "")),
        "part 2 of the key is empty: every unit without it would share one key, and all but the first would \
         count as done; use a value that every unit has"
    );
    assert_eq!(
        output(key!("a\u{85}b")),
        "part 1 of the key holds U+0085, a control character or a line break"
    );
    assert_eq!(
        output(key!("k".repeat(600))),
        "the key is 600 bytes long, the limit is 512: use a shorter id, or the hash of it"
    );
    assert_eq!(
        output(Key::from_parts(&[])),
        "a key needs at least one part: name the fact, as in key!(\"invoice\", id)"
    );
}

#[test]
fn a_callers_own_key_is_refused_with_a_caret_under_the_fault() {
    assert_eq!(
        Key::parse("invoice:\t7").unwrap_err().to_string(),
        "cannot read the key\n  \
           invoice:\u{fffd}7\n          \
                   ^ U+0009 is a control character or a line break\n  \
         leave it out"
    );
}
