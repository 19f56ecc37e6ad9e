//! The guards of the Rust code: lines that refuse, fence, lock or compare, so that nothing wrong is
//! written, sent or claimed.
//!
//! A statement can be weakened in a running process; a line of Rust cannot. So these guards are
//! removed by hand, in a changed source that is not kept: the text in the third column replaces the
//! guard, and the test in the fourth must fail. `list/rust.txt` records the results. The tests here
//! check only that each guard is in its file once and that its test exists; after a change of a
//! guard it is removed again.
//!
//! ```text
//! store/expand.rs | mine.is_none() | false | conformance scopes::a_story::sqlite
//! ```
//!
//! The columns are those of the other lists, except the first: the file, below `src/`. They are
//! separated by ` | `, and a source is read as one line. A hyphen deletes the guard. `open:` says what
//! is missing where there is neither a test nor a reason.

use std::fmt;

use crate::row::{Expected, here};

pub(crate) struct Guard {
    file: String,
    pub(crate) text: String,
    pub(crate) instead: String,
    pub(crate) expected: Expected,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {}", self.file, self.text, self.instead)
    }
}

impl Guard {
    fn parse(line: &str) -> Guard {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [file, text, instead, expected] = columns.try_into().expect(line);
        let [file, text, instead] = [file, text, instead].map(str::to_owned);
        let expected =
            if expected.starts_with("open: ") { Expected::Unmissed } else { Expected::parse(expected) };
        Guard { file, text, instead, expected }
    }

    /// How often its text occurs in its file.
    pub(crate) fn found(&self) -> usize {
        let source = std::fs::read_to_string(here().join("src").join(&self.file)).expect(&self.file);
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
        source.matches(&self.text).count()
    }
}

pub(crate) fn all() -> Vec<Guard> {
    let lines = include_str!("list/rust.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Guard::parse).collect()
}
