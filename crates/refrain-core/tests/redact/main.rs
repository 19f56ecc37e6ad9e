//! Planted secrets are never printed, however they were encoded and wherever a chunk ended.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

mod forms;
mod size;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use refrain_core::redact::{HIDDEN, Redactor, SHORTEST, Secret};

const CANARIES: [&str; 5] =
    ["CANARY-4711-abcdef", "p@ss/w+rd?=&", "q\"uo\\te\n\ttab", "Zürich-🔑-schlüssel", "two words+plus"];

type Encoding = (&'static str, fn(&str) -> String);

const ENCODINGS: [Encoding; 16] = [
    ("raw", |secret| secret.to_owned()),
    ("base64", |secret| STANDARD.encode(secret)),
    ("base64, one byte before", |secret| STANDARD.encode(format!("x{secret}yy"))),
    ("base64, two bytes before", |secret| STANDARD.encode(format!("u:{secret}"))),
    ("base64 for urls", |secret| URL_SAFE_NO_PAD.encode(secret)),
    ("base64 for urls, one byte before", |secret| URL_SAFE_NO_PAD.encode(format!("x{secret}"))),
    ("base64 for urls, two bytes before", |secret| URL_SAFE_NO_PAD.encode(format!("ü{secret}zz"))),
    ("base64 inside a url", |secret| percent(&STANDARD.encode(secret), false)),
    ("percent", |secret| percent(secret, false)),
    ("percent in lower case", |secret| {
        percent(secret, false).replace("%2F", "%2f").replace("%3F", "%3f").replace("%C3%BC", "%c3%bc")
    }),
    ("percent of every byte", |secret| percent(secret, true)),
    ("percent twice", |secret| percent(&percent(secret, false), false)),
    ("a form", |secret| percent(secret, false).replace("%20", "+")),
    ("JSON", json),
    ("JSON in ASCII", escaped),
    ("JSON inside JSON", |secret| json(&json(secret))),
];

fn percent(text: &str, all: bool) -> String {
    let stays = |byte: u8| !all && (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    text.bytes()
        .map(|byte| if stays(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn escaped(text: &str) -> String {
    let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    units.concat()
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap().trim_matches('"').to_owned()
}

fn redactor() -> Redactor {
    Redactor::new(&CANARIES.map(Secret::new))
}

/// The longest part of the planted text that is still visible.
fn longest_left(planted: &str, shown: &str) -> usize {
    let from = planted.char_indices().map(|(at, _)| at);
    let pieces = from.flat_map(|at| {
        let ends = planted.char_indices().map(move |(end, _)| end).filter(move |end| *end > at);
        ends.chain([planted.len()]).map(move |end| at..end)
    });
    pieces.filter(|piece| shown.contains(&planted[piece.clone()])).map(|piece| piece.len()).max().unwrap_or(0)
}

#[test]
fn s19_planted_canaries_come_out_in_none_of_sixteen_encodings() {
    let redactor = redactor();
    for canary in CANARIES {
        for (name, encode) in ENCODINGS {
            let planted = encode(canary);
            let shown = redactor.redact(&format!("<<{planted}>>")).into_owned();
            assert!(shown.contains(HIDDEN), "{name}: {planted} in {shown}");
            assert!(longest_left(&planted, &shown) <= 4, "{name}: {planted} in {shown}");
        }
    }
}

#[test]
fn s19_planted_canaries_do_not_slip_through_between_two_chunks() {
    let redactor = redactor();
    for (name, encode) in ENCODINGS {
        for canary in CANARIES {
            let text = format!("before {} after", encode(canary));
            let whole = redactor.redact(&text).into_owned();
            for (border, _) in text.char_indices() {
                let mut stream = redactor.stream();
                let first = stream.push(&text[..border]);
                let second = stream.push(&text[border..]);
                assert_eq!(first + &second + &stream.finish(), whole, "{name}, cut at {border}: {text}");
            }
            let mut stream = redactor.stream();
            let pushed: String = text.chars().map(|character| stream.push(&character.to_string())).collect();
            assert_eq!(pushed + &stream.finish(), whole, "{name}, one by one: {text}");
        }
    }
}

#[test]
fn text_without_a_secret_is_neither_changed_nor_copied() {
    let text = "2026-06-09 12:00 done: 3 rows, 100 % CANARY-4711-abcde";
    assert!(matches!(redactor().redact(text), Cow::Borrowed(same) if same == text));
    assert_eq!(Redactor::default().redact("anything"), "anything");
}

#[test]
fn a_line_is_shown_as_soon_as_it_is_written() {
    let mut stream = redactor().stream();
    assert_eq!(stream.push("step 1\n"), "step 1\n");
    assert_eq!(stream.push("step C"), "step ");
    assert_eq!(stream.push("\n"), "C\n");
}

#[test]
fn short_values_are_not_searched_for() {
    let redactor = Redactor::new(&[Secret::new("abc"), Secret::new("")]);
    assert_eq!(redactor.redact("abc"), "abc");
    assert_eq!(SHORTEST, 4);
}

#[test]
fn secrets_that_overlap_are_hidden_together() {
    let redactor = Redactor::new(&["abcd", "abcdef", "cdefgh"].map(Secret::new));
    assert_eq!(redactor.redact("-abcdefgh-"), format!("-{HIDDEN}-"));
    let repeated = Redactor::new(&[Secret::new("aaaa")]);
    let mut stream = repeated.stream();
    let shown: String = (0..30).map(|_| stream.push(&"a".repeat(100))).collect();
    assert!(!(shown + &stream.finish()).contains('a'));
}

#[test]
fn a_secret_is_never_printed() {
    let secret = Secret::new(CANARIES[0]);
    assert!(!format!("{secret:?} {:?}", redactor()).contains("CANARY"));
}

proptest! {
    #[test]
    fn chunks_make_no_difference(text in "[ab%\\\\u0-9 +é]{0,40}", cuts in prop::collection::vec(0_usize..40, 0..4)) {
        let redactor = Redactor::new(&["abab", "a%b\\u", "é+ a"].map(Secret::new));
        let mut stream = redactor.stream();
        let mut shown = String::new();
        let mut from = 0;
        let mut borders: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
        borders.sort_unstable();
        for border in borders {
            shown += &stream.push(&text[from..border]);
            from = border;
        }
        shown += &stream.push(&text[from..]);
        prop_assert_eq!(shown + &stream.finish(), redactor.redact(&text));
    }
}
