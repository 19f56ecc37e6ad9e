//! What commands print, word for word: people learn it, and programs read it.
//!
//! A transcript has what was typed after `$`, what came on stdout as it is, what came on stderr after `|`, and the exit
//! code after `=`. `REFRAIN_BLESS=1` writes them anew.

use std::fmt::Write;
use std::path::Path;

use super::{Desk, Said};

/// Types these lines one after the other.
pub(crate) fn transcript(desk: &Desk, lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let Said { code, stdout, stderr } = desk.refrain(line);
        write!(text, "$ refrain {line}\n{stdout}").unwrap();
        // Who runs the tests must not change what is expected.
        for talk in stderr.lines().filter(|line| !line.starts_with("this is root")) {
            writeln!(text, "{}", format!("| {talk}").trim_end()).unwrap();
        }
        writeln!(text, "= {}\n", code.unwrap()).unwrap();
    }
    timeless(&text.replace(desk.path().to_str().unwrap(), "/desk"))
}

/// Hides the times at which the test ran, those that it chose are of 2001; and how long something took, or is.
fn timeless(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_digit() || "TZ:.-".contains(letter);
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|letter| !is_part(letter)).unwrap_or(from.len());
        let (word, after) = from.split_at(from.split_at(end).0.trim_end_matches([':', '.']).len().max(1));
        let is_time = word.len() >= 20 && word.ends_with('Z') && !word.starts_with("2001-");
        let is_length =
            before.ends_with("took ") || before.ends_with("\"bytes\"") || after.starts_with(" bytes");
        shown += before;
        shown += match () {
            () if is_time => "TIME",
            () if is_length => "N",
            () => word,
        };
        // A length has the unit that it needs, which is another one on a slow machine.
        let is_unit = |letter: char| letter == ' ' || letter.is_ascii_alphanumeric();
        rest = if before.ends_with("took ") { after.trim_start_matches(is_unit) } else { after };
    }
    shown + rest
}

/// Compares it with what is kept under this name.
#[track_caller]
pub(crate) fn matches(name: &str, transcript: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands").join(name);
    if std::env::var_os("REFRAIN_BLESS").is_some() {
        std::fs::write(path, transcript).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(transcript == expected, "{name} differs; REFRAIN_BLESS=1 writes it anew:\n{transcript}");
}
