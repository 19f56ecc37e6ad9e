//! Lines of every kind: what they are, and what is said of those that are nothing.

use super::*;
use proptest::prelude::*;
use refrain_core::feed::{Apply, FeedSource, FeedWatermark};
use refrain_core::state::OnChange;

fn feed(key: &str) -> Feed {
    Feed {
        source: FeedSource::Command(Vec::new()),
        key: KeyTemplate::parse(key).unwrap(),
        order: None,
        on_change: OnChange::Update,
        fields: None,
        per: refrain_core::Per::Ever,
        watermark: None,
        cursor: None,
        apply: Apply::Command { argv: Vec::new(), parallel: 1 },
    }
}

fn shape(key: &str) -> Shape {
    let values =
        Values { ds: Some("2026-06-09".to_owned()), scope: Some("acme".to_owned()), ..Values::default() };
    Shape::of(&feed(key), &values)
}

fn read(shape: &Shape, line: &str) -> Result<Read, Fault> {
    match shape.read(line)? {
        Said::Unit(unit) => Ok(unit.read.unwrap()),
        Said::Cursor(token) => panic!("{token} is a cursor"),
    }
}

#[test]
fn a_key_is_made_of_fields_paths_and_what_the_run_is_about() {
    for (template, line, key) in [
        ("invoice:{id}", r#"{"id": 7}"#, "invoice:7"),
        ("invoice:{id}", r#"{"id": "a:b"}"#, "invoice:a%3Ab"),
        ("{id}", r#"{"id": 12345678901234567890123}"#, "12345678901234567890123"),
        ("{id}", r#"{"id": true}"#, "true"),
        ("{id}", r#"{"id": "\u00fc"}"#, "ü"),
        ("{a.b}:{ds}", r#"{"a": {"b": "x"}, "ds": "other"}"#, "x:2026-06-09"),
        ("{scope}:{id}", r#"{"id": 7}"#, "acme:7"),
        ("{cursor}", r#"{"cursor": 7}"#, "7"),
    ] {
        assert_eq!(read(&shape(template), line).unwrap().key.as_str(), key, "{template} {line}");
    }
    let content = |line| read(&shape("{$content}"), line).unwrap().key;
    assert_eq!(content(r#"{"a": 1, "b": 10.0}"#), content(r#"{"b":1e1,"a":1}"#));
    assert_ne!(content(r#"{"a": 1}"#), content(r#"{"a": 2}"#));
    let narrow =
        Shape::of(&Feed { fields: Some(vec!["a".to_owned()]), ..feed("{$content}") }, &Values::default());
    let key = |line| read(&narrow, line).unwrap().key;
    assert_eq!(key(r#"{"a": 1, "at": 1}"#), key(r#"{"a": 1, "at": 2}"#));
}

#[test]
fn a_line_that_is_no_unit_says_where_and_why() {
    for (line, column, message) in [
        ("no json", Some(2), "this is no JSON: expected ident"),
        (r#"{"id": 7"#, Some(8), "this is no JSON: EOF while parsing an object"),
        (r#"{"id": 7} x"#, Some(11), "this is no JSON: trailing characters"),
        ("[7]", Some(1), "this is no JSON object"),
        ("7", Some(1), "this is no JSON object"),
        (
            r#"{"id": 7, "id": 8}"#,
            None,
            "the unit has the key `id` twice in one object: leave one of them out",
        ),
        (
            r#"{"no": 7}"#,
            None,
            "{id} of the key has no value: use a field that every unit has, or {$content}",
        ),
        (r#"{"ü": 1, "id": 1.5}"#, Some(16), "`id` is 1.5: a key is made of texts, integers and booleans"),
        (r#"{"id": {"a": 1}}"#, Some(8), "`id` is {\"a\": 1}: a key is made of texts, integers and booleans"),
        (r#"{"$cursor": "a", "id": 1}"#, Some(13), "a cursor stands alone in its line"),
        (r#"{"$cursor": null}"#, Some(13), "a cursor is a text"),
        (r#"{"$cursor": ""}"#, Some(13), "a cursor is not empty"),
    ] {
        let fault = shape("{id}").read(line).unwrap_err();
        assert_eq!((fault.column, fault.message.as_str()), (column, message), "{line}");
    }
    let empty = shape("{id}").read(r#"{"id": ""}"#).unwrap_err();
    assert!(empty.message.starts_with("{id} of the key is empty"), "{empty:?}");
}

#[test]
fn a_cursor_is_a_text_or_an_integer() {
    for (line, token) in [(r#"{"$cursor": "a b"}"#, "a b"), (r#" {"$cursor":42}"#, "42")] {
        match shape("{id}").read(line) {
            Ok(Said::Cursor(found)) => assert_eq!(found, token),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cursor_is_no_longer_than_what_is_kept_of_it_and_has_no_nul() {
    let read = |token: &str| shape("{id}").read(&format!(r#"{{"$cursor": "{token}"}}"#)).is_ok();
    assert!(read(&"x".repeat(TOKEN_BYTES_MAX)));
    assert!(!read(&"x".repeat(TOKEN_BYTES_MAX + 1)));
    assert!(!read("a\\u0000b"));
}

#[test]
fn an_order_is_an_integer_or_a_time() {
    let shape = Shape::of(&Feed { order: Some("at".to_owned()), ..feed("{id}") }, &Values::default());
    let micros = 1_781_006_400_000_000;
    for (at, order) in [
        ("7", Some(7)),
        ("-7", Some(-7)),
        ("\"7\"", Some(7)),
        ("\"2026-06-09T12:00:00Z\"", Some(micros)),
        ("\"2026-06-09T14:00:00+02:00\"", Some(micros)),
        ("\"2026-06-09 12:00:00\"", Some(micros)),
        ("1.5", None),
        ("\"soon\"", None),
        ("null", None),
    ] {
        let found = read(&shape, &format!("{{\"id\": 1, \"at\": {at}}}"));
        assert_eq!(found.ok().and_then(|read| read.order), order, "{at}");
    }
}

#[test]
fn m6_a_time_is_read_in_the_forms_in_which_sources_write_it() {
    let watermark = Some(FeedWatermark { field: "at".to_owned(), overlap: std::time::Duration::ZERO });
    let shape = Shape::of(&Feed { watermark, ..feed("{id}") }, &Values::default());
    for (at, time) in [
        ("\"2026-06-09T12:00:00Z\"", Some("2026-06-09T12:00:00Z")),
        ("\"2026-06-09T12:00:00.5+02:00\"", Some("2026-06-09T10:00:00.5Z")),
        ("\"2026-06-09 12:00:00\"", Some("2026-06-09T12:00:00Z")),
        ("\"2026-06-09 12:00:00+00\"", Some("2026-06-09T12:00:00Z")),
        ("\"2026-06-09\"", Some("2026-06-09T00:00:00Z")),
        ("1781006400", Some("2026-06-09T12:00:00Z")),
        ("1781006400.25", Some("2026-06-09T12:00:00.25Z")),
        ("-1.5", Some("1969-12-31T23:59:58.5Z")),
        ("1e9", None),
        ("\"yesterday\"", None),
        ("null", None),
        ("true", None),
    ] {
        let found = read(&shape, &format!("{{\"id\": 1, \"at\": {at}}}"));
        let found = found.ok().and_then(|read| read.time).map(|time| time.to_string());
        assert_eq!(found.as_deref(), time, "{at}");
    }
}

#[test]
fn what_is_kept_of_a_unit_is_its_own_text_and_gives_the_same_key() {
    let shape = shape("{id}");
    let Ok(Said::Unit(unit)) = shape.read(r#"{"total": 10.00, "id": 12345678901234567890123}"#) else {
        panic!()
    };
    let kept = serde_json::to_string(&unit).unwrap();
    assert_eq!(kept, unit.text);
    let back: Unit = serde_json::from_str(&kept).unwrap();
    assert_eq!(shape.key_of(&back).unwrap(), shape.key_of(&unit).unwrap());
    assert!(serde_json::from_str::<Unit>("\"no object\"").is_err());
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(line in "\\PC*|[{}\\[\\]\":,.$a-z0-9 -]{0,24}") {
        let watermark = Some(FeedWatermark { field: "a".to_owned(), overlap: std::time::Duration::ZERO });
        let shape = Shape::of(&Feed { order: Some("b.c".to_owned()), watermark, ..feed("{id}") }, &Values::default());
        let _ = shape.read(&line);
    }

    #[test]
    fn no_time_makes_it_panic(text in "-?[0-9.eE+-]{1,24}") {
        let _ = (moment(&text), order(&text));
    }
}

#[test]
fn a_zone_in_brackets_is_read_with_its_offset_or_not_at_all() {
    for (value, read) in [
        (r#""2026-06-09T00:00:00+02:00[Europe/Berlin]""#, Some("2026-06-08T22:00:00Z")),
        (r#""2026-06-08T22:00:00Z[Europe/Berlin]""#, Some("2026-06-08T22:00:00Z")),
        (r#""2026-06-09T00:00:00+02:00""#, Some("2026-06-08T22:00:00Z")),
        (r#""2026-06-09T00:00:00""#, Some("2026-06-09T00:00:00Z")),
        (r#""2026-06-09T00:00:00[Europe/Berlin]""#, None),
        (r#""2026-06-09[Europe/Berlin]""#, None),
        (r#""2026-06-09T00:00:00+05:00[Europe/Berlin]""#, None),
        (r#""2026-06-09T00:00:00+02:00[Mars/Olympus]""#, None),
        (r#""2026-06-09T00:00:00[""#, None),
    ] {
        let expected = read.map(|instant| instant.parse::<Timestamp>().unwrap());
        assert_eq!(moment(value), expected, "{value}");
    }
}
