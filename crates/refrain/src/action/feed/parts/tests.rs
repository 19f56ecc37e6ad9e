//! Bytes of every kind, cut into lines and parts.

use super::*;
use proptest::prelude::*;
use refrain_core::feed::{Apply, Feed, FeedSource};
use refrain_core::state::OnChange;
use refrain_core::{KeyTemplate, Per, Values};

fn builder(has_cursor: bool) -> PartBuilder {
    let feed = Feed {
        source: FeedSource::Command(Vec::new()),
        key: KeyTemplate::parse("{id}").unwrap(),
        order: None,
        on_change: OnChange::Update,
        fields: None,
        per: Per::Ever,
        watermark: None,
        cursor: None,
        apply: Apply::Command { argv: Vec::new(), parallel: 1 },
    };
    PartBuilder::new(UnitReader::of(&feed, &Values::default()), has_cursor, PART_LINES_MAX)
}

/// All parts of a text, as `keys | malformed lines | cursor`.
fn parts(text: &[u8], has_cursor: bool) -> Vec<String> {
    let (mut builder, mut lines, mut parts) = (builder(has_cursor), LineSplitter::default(), Vec::new());
    for line in lines.push(text) {
        parts.extend(builder.push(&line).unwrap());
    }
    if let Some(line) = lines.rest() {
        parts.extend(builder.push(&line).unwrap());
    }
    parts.push(builder.rest());
    parts.iter().filter(|part| !part.is_empty()).map(shown).collect()
}

fn shown(part: &SourcePart) -> String {
    let keys: Vec<&str> = part.units.iter().map(Unit::key).collect();
    let malformed: Vec<&str> = part.malformed.iter().map(|line| line.message.as_str()).collect();
    format!("{} | {} | {}", keys.join(" "), malformed.join("; "), part.cursor.as_deref().unwrap_or("-"))
}

#[test]
fn a_cursor_ends_a_part_and_the_lines_after_the_last_cursor_are_a_part_without_one() {
    let text =
        b"{\"id\":1}\n{\"id\":2}\n{\"$cursor\":\"a\"}\n\n{\"id\":3}\r\n{\"$cursor\":\"b\"}\n{\"id\":4}";
    assert_eq!(parts(text, true), ["1 2 |  | a", "3 |  | b", "4 |  | -"]);
}

#[test]
fn a_malformed_line_is_reported_by_number_and_the_others_are_read() {
    let text = b"{\"id\":1}\n\nnope\n{\"id\":2}\n\xff\xfe\n{\"id\":3}\n";
    let messages = "line 3, column 2: not valid JSON: expected ident; line 5, column 1: not valid UTF-8";
    assert_eq!(parts(text, false), [format!("1 2 3 | {messages} | -")]);
}

#[test]
fn a_line_that_is_too_long_is_not_held_in_memory_and_its_neighbours_are_read() {
    let mut text = b"{\"id\":1}\n".to_vec();
    text.extend(vec![b'x'; 3 * LINE_BYTES_MAX]);
    text.extend(b"\n{\"id\":2}\n");
    let mut lines = LineSplitter::default();
    let mut read = Vec::new();
    for piece in text.chunks(60_000) {
        read.extend(lines.push(piece));
        assert!(lines.line.bytes.len() <= LINE_BYTES_MAX + 60_000);
    }
    assert_eq!(read.len(), 3);
    assert_eq!((read[1].bytes.len(), read[1].too_long), (4_096, Some(3 * LINE_BYTES_MAX)));
    let mut builder = builder(false);
    for line in &read {
        assert!(builder.push(line).unwrap().is_none());
    }
    let part = builder.rest();
    assert_eq!(shown(&part), "1 2 | line 2: the line has 3145728 bytes; the maximum is 1048576 | -");
    assert!(!part.malformed[0].is_whole);
}

#[test]
fn a_row_that_is_too_long_is_cut_as_a_line_is() {
    let line = |length: usize| SourceLine::from("x".repeat(length));
    assert_eq!(line(LINE_BYTES_MAX).too_long, None);
    let long = line(LINE_BYTES_MAX + 1);
    assert_eq!((long.bytes.len(), long.too_long), (4_096, Some(LINE_BYTES_MAX + 1)));
}

#[test]
fn a_stored_line_has_no_nul() {
    let mut builder = builder(false);
    let line = SourceLine { bytes: b"no \0 unit".to_vec(), too_long: None };
    assert!(builder.push(&line).unwrap().is_none());
    assert_eq!(builder.rest().malformed[0].text, "no \u{fffd} unit", "PostgreSQL would refuse it");
}

#[test]
fn a_part_is_cut_by_count_and_by_bytes() {
    let text: Vec<String> = (0..2_500).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let counts = |text: &str| {
        let (mut builder, mut lines, mut counts) = (builder(false), LineSplitter::default(), Vec::new());
        for line in lines.push(text.as_bytes()) {
            counts.extend(builder.push(&line).unwrap().map(|part| part.units.len()));
        }
        counts.push(builder.rest().units.len());
        counts
    };
    assert_eq!(counts(&text.concat()), [1_000, 1_000, 500]);
    let wide = "x".repeat(1_000_000);
    let text: Vec<String> = (0..20).map(|id| format!("{{\"id\":{id},\"wide\":\"{wide}\"}}\n")).collect();
    assert_eq!(counts(&text.concat()), [9, 9, 2]);
}

#[test]
fn a_cursor_in_a_job_without_one_is_an_error_that_says_what_to_write() {
    let mut builder = builder(false);
    builder.push(&SourceLine::from("{\"id\":1}".to_owned())).unwrap();
    let error = builder.push(&SourceLine::from("{\"$cursor\":\"a\"}".to_owned())).unwrap_err();
    assert!(!error.is_retryable());
    assert!(
        error
            .to_string()
            .starts_with("line 2: the source printed a cursor, but the job has no [cursor]\n  add [cursor]"),
        "{error}"
    );
}

#[test]
fn a_source_that_prints_no_units_fails_with_one_error() {
    let mut builder = builder(false);
    let ended = (0..2_000).find_map(|_| builder.push(&SourceLine::from("nope".to_owned())).err()).unwrap();
    assert!(
        ended
            .to_string()
            .starts_with("more than 1000 lines are malformed, the last one: line 1001, column 2"),
        "{ended}"
    );
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_the_bytes_are_cut(text in "([a-c]{0,5}\n?){0,9}", size in 1_usize..7) {
        let mut lines = LineSplitter::default();
        let mut read: Vec<Vec<u8>> = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            read.extend(lines.push(piece).into_iter().map(|line| line.bytes));
        }
        read.extend(lines.rest().map(|line| line.bytes));
        let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        prop_assert_eq!(read, expected);
    }
}
