//! The output of commands, verbatim: users learn it, and programs parse it.
//!
//! A transcript has the typed line after `$`, stdout unchanged, stderr after `|`, and the exit code after `=`.
//! `REFRAIN_BLESS=1` rewrites it.

use std::fmt::Write;
use std::path::Path;

use refrain_harness::golden;

use super::{CommandOutput, Desk};

/// Types these lines one after another. Returns their transcript.
pub(crate) fn transcript(desk: &Desk, lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let CommandOutput { code, stdout, stderr } = desk.refrain(line);
        write!(text, "$ refrain {line}\n{stdout}").unwrap();
        // The user who runs the tests must not change the expected text.
        for talk in stderr.lines().filter(|line| !line.starts_with("running as root")) {
            writeln!(text, "{}", format!("| {talk}").trim_end()).unwrap();
        }
        writeln!(text, "= {}\n", code.unwrap()).unwrap();
    }
    timeless(&text.replace(desk.path().to_str().unwrap(), "/desk"))
}

/// Hides the times at which the test ran (the times that it sets are in 2001), and durations and sizes.
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
        // The unit of a duration depends on the speed of the machine.
        let is_unit = |letter: char| letter == ' ' || letter.is_ascii_alphanumeric();
        rest = if before.ends_with("took ") { after.trim_start_matches(is_unit) } else { after };
    }
    shown + rest
}

/// Compares a transcript with the checked-in one of this name.
#[track_caller]
pub(crate) fn matches(name: &str, transcript: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands").join(name);
    golden::matches(&path, transcript);
}
