//! Output of every kind, in pieces of every size.

use refrain_core::redact::Secret;

use super::*;
use OutputStream::{Remark, Stderr, Stdout};

fn capture() -> OutputCapture {
    OutputCapture::new(&Redactor::default())
}

fn pieces(capture: &mut OutputCapture) -> Vec<(OutputStream, String)> {
    capture.end(7);
    capture.take().into_iter().map(|piece| (piece.stream, piece.text)).collect()
}

fn all_of(capture: &mut OutputCapture, stream: OutputStream) -> String {
    let pieces = pieces(capture);
    pieces.into_iter().filter(|(which, _)| *which == stream).map(|(_, text)| text).collect()
}

#[test]
fn lines_are_kept_whole_and_in_their_order() {
    let mut capture = capture();
    for (stream, text) in [(Stdout, "one\ntw"), (Stderr, "oh\n"), (Stdout, "o\nthree\n"), (Stderr, "dear")] {
        capture.push(stream, text.as_bytes(), 1);
    }
    let lines = [(Stdout, "one\n"), (Stderr, "oh\n"), (Stdout, "two\nthree\n"), (Stderr, "dear")];
    assert_eq!(pieces(&mut capture), lines.map(|(stream, text)| (stream, text.to_owned())));
}

#[test]
fn a_character_in_two_pieces_is_joined_and_invalid_bytes_are_replaced() {
    let text = "ü𝄞\n".as_bytes();
    for cut in 0..text.len() {
        let mut capture = capture();
        capture.push(Stdout, &text[..cut], 1);
        capture.push(Stdout, &text[cut..], 1);
        assert_eq!(all_of(&mut capture, Stdout), "ü𝄞\n", "cut at {cut}");
    }
    let mut capture = capture();
    capture.push(Stdout, b"a\xffb\0c\xf0\x9d\n\xc3", 1);
    assert_eq!(all_of(&mut capture, Stdout), "a�b�c�\n�");
}

#[test]
fn ten_megabytes_on_one_line_leave_its_beginning_and_a_count() {
    let mut capture = capture();
    for _ in 0..1_000 {
        capture.push(Stdout, &[b'x'; 10_000], 1);
    }
    capture.push(Stdout, b"\nafter\n", 1);
    let kept = all_of(&mut capture, Stdout);
    let skipped = 10_000_000 - LINE_BYTES_MAX;
    let expected =
        format!("{} … {skipped} bytes of this line are omitted …\nafter\n", "x".repeat(LINE_BYTES_MAX));
    assert_eq!(kept, expected);
}

#[test]
fn a_million_lines_leave_the_first_and_the_last_and_a_count_that_adds_up() {
    let mut capture = capture();
    let mut stored: Vec<Piece> = Vec::new();
    for number in 0..1_000_000 {
        capture.push(Stdout, format!("{number:07}\n").as_bytes(), 1);
        if capture.is_full() {
            stored.extend(capture.take());
        }
    }
    capture.end(2);
    stored.extend(capture.take());
    let all: String = stored.iter().filter(|one| one.stream == Stdout).map(|one| one.text.as_str()).collect();
    assert_eq!(all.len(), HEAD_BYTES_MAX + TAIL_BYTES_MAX);
    assert!(all.starts_with("0000000\n0000001\n") && all.ends_with("0999998\n0999999\n"));
    let skipped = 1_000_000 - (HEAD_BYTES_MAX + TAIL_BYTES_MAX) / 8;
    let remark = format!("… {skipped} lines ({} bytes) are omitted here …\n", skipped * 8);
    let at = stored.iter().position(|one| one.text.ends_with(&remark)).unwrap();
    assert_eq!(stored[at].stream, Remark);
    assert!(stored[at + 1].text.starts_with(&format!("{:07}\n", 1_000_000 - TAIL_BYTES_MAX / 8)));
}

#[test]
fn streams_that_take_turns_do_not_become_a_row_for_each_line() {
    let mut capture = capture();
    for _ in 0..20_000 {
        capture.push(Stdout, b"a\n", 1);
        capture.push(Stderr, b"b\n", 1);
    }
    capture.end(1);
    let pieces = capture.take();
    assert!(pieces.len() <= PIECES_MAX, "{} pieces", pieces.len());
    assert_eq!(pieces.iter().map(|piece| piece.text.len()).sum::<usize>(), 80_000);
}

#[test]
fn the_end_of_standard_error_is_short_harmless_and_begins_with_a_line() {
    let mut capture = capture();
    assert_eq!(capture.last_words(), "");
    for number in 0..10_000 {
        capture.push(Stderr, format!("line {number}\n").as_bytes(), 1);
    }
    capture.push(Stderr, b"\x1b[31mred\n\n", 1);
    let words = capture.last_words();
    assert!(words.len() <= LAST_WORDS_BYTES_MAX && words.starts_with("line 9"), "{words}");
    assert!(words.ends_with("line 9999\n�[31mred"), "{words}");
}

#[test]
fn s19_a_secret_that_comes_in_pieces_is_neither_stored_nor_shown() {
    let mut capture = OutputCapture::new(&Redactor::new(&[Secret::new("hunter2")]));
    for byte in b"password hunter2\nhunt" {
        capture.push(Stderr, &[*byte], 1);
    }
    assert_eq!(capture.last_words(), "password ••••");
    assert_eq!(all_of(&mut capture, Stderr), "password ••••\nhunt");
}
