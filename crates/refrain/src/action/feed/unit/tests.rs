//! Lines of every kind: the units and cursors they contain, and the errors of malformed ones.

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

fn reader(key: &str) -> UnitReader {
    let values =
        Values { ds: Some("2026-06-09".to_owned()), scope: Some("acme".to_owned()), ..Values::default() };
    UnitReader::of(&feed(key), &values)
}

fn read(reader: &UnitReader, line: &str) -> Result<ParsedUnit, LineError> {
    match reader.read(line)? {
        LineContent::Unit(unit) => Ok(unit.parsed.unwrap()),
        LineContent::Cursor(token) => panic!("{token} is a cursor"),
    }
}

#[test]
fn a_key_is_made_of_fields_paths_and_values_of_the_run() {
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
        assert_eq!(read(&reader(template), line).unwrap().key.as_str(), key, "{template} {line}");
    }
    let content = |line| read(&reader("{$content}"), line).unwrap().key;
    assert_eq!(content(r#"{"a": 1, "b": 10.0}"#), content(r#"{"b":1e1,"a":1}"#));
    assert_ne!(content(r#"{"a": 1}"#), content(r#"{"a": 2}"#));
    let narrow = UnitReader::of(
        &Feed { fields: Some(vec!["a".to_owned()]), ..feed("{$content}") },
        &Values::default(),
    );
    let key = |line| read(&narrow, line).unwrap().key;
    assert_eq!(key(r#"{"a": 1, "at": 1}"#), key(r#"{"a": 1, "at": 2}"#));
}

#[test]
fn a_malformed_line_says_where_and_why() {
    for (line, column, message) in [
        ("no json", Some(2), "not valid JSON: expected ident"),
        (r#"{"id": 7"#, Some(8), "not valid JSON: EOF while parsing an object"),
        (r#"{"id": 7} x"#, Some(11), "not valid JSON: trailing characters"),
        ("[7]", Some(1), "not a JSON object"),
        ("7", Some(1), "not a JSON object"),
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
        (r#"{"ü": 1, "id": 1.5}"#, Some(16), "`id` is 1.5: a key part is a string, an integer or a boolean"),
        (
            r#"{"id": {"a": 1}}"#,
            Some(8),
            "`id` is {\"a\": 1}: a key part is a string, an integer or a boolean",
        ),
        (r#"{"$cursor": "a", "id": 1}"#, Some(13), "a line with a cursor has no other field"),
        (r#"{"$cursor": null}"#, Some(13), "a cursor must be a string"),
        (r#"{"$cursor": ""}"#, Some(13), "a cursor must not be empty"),
    ] {
        let error = reader("{id}").read(line).unwrap_err();
        assert_eq!((error.column, error.message.as_str()), (column, message), "{line}");
    }
    let empty = reader("{id}").read(r#"{"id": ""}"#).unwrap_err();
    assert!(empty.message.starts_with("{id} of the key is empty"), "{empty:?}");
}

#[test]
fn a_cursor_is_a_string_or_an_integer() {
    for (line, token) in [(r#"{"$cursor": "a b"}"#, "a b"), (r#" {"$cursor":42}"#, "42")] {
        match reader("{id}").read(line) {
            Ok(LineContent::Cursor(found)) => assert_eq!(found, token),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cursor_has_a_maximum_length_and_no_nul() {
    let read = |token: &str| reader("{id}").read(&format!(r#"{{"$cursor": "{token}"}}"#)).is_ok();
    assert!(read(&"x".repeat(CURSOR_BYTES_MAX)));
    assert!(!read(&"x".repeat(CURSOR_BYTES_MAX + 1)));
    assert!(!read("a\\u0000b"));
}

#[test]
fn an_order_is_an_integer_or_a_timestamp() {
    let reader = UnitReader::of(&Feed { order: Some("at".to_owned()), ..feed("{id}") }, &Values::default());
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
        let found = read(&reader, &format!("{{\"id\": 1, \"at\": {at}}}"));
        assert_eq!(found.ok().and_then(|parsed| parsed.order), order, "{at}");
    }
}

#[test]
fn m6_a_timestamp_is_read_in_the_forms_that_sources_write() {
    let watermark = Some(FeedWatermark { field: "at".to_owned(), overlap: std::time::Duration::ZERO });
    let reader = UnitReader::of(&Feed { watermark, ..feed("{id}") }, &Values::default());
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
        let found = read(&reader, &format!("{{\"id\": 1, \"at\": {at}}}"));
        let found = found.ok().and_then(|parsed| parsed.time).map(|time| time.to_string());
        assert_eq!(found.as_deref(), time, "{at}");
    }
}

#[test]
fn a_stored_unit_is_its_own_text_and_gives_the_same_key() {
    let reader = reader("{id}");
    let Ok(LineContent::Unit(unit)) = reader.read(r#"{"total": 10.00, "id": 12345678901234567890123}"#)
    else {
        panic!()
    };
    let kept = serde_json::to_string(&unit).unwrap();
    assert_eq!(kept, unit.text);
    let back: Unit = serde_json::from_str(&kept).unwrap();
    assert_eq!(reader.key_of(&back).unwrap(), reader.key_of(&unit).unwrap());
    assert!(serde_json::from_str::<Unit>("\"no object\"").is_err());
}

proptest! {
    #[test]
    fn no_line_panics_the_reader(line in "\\PC*|[{}\\[\\]\":,.$a-z0-9 -]{0,24}") {
        let watermark = Some(FeedWatermark { field: "a".to_owned(), overlap: std::time::Duration::ZERO });
        let reader = UnitReader::of(&Feed { order: Some("b.c".to_owned()), watermark, ..feed("{id}") }, &Values::default());
        let _ = reader.read(&line);
    }

    #[test]
    fn no_timestamp_panics_the_reader(text in "-?[0-9.eE+-]{1,24}") {
        let _ = (timestamp(&text), order(&text));
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
        assert_eq!(timestamp(value), expected, "{value}");
    }
}
