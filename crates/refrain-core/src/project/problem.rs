//! A problem in the files of a project: what is wrong, where, and what to write instead.
//!
//! A problem has the byte range in the file, so that a terminal can underline it and an editor can mark it; elsewhere it
//! prints as plain lines. A project reports all of its problems at once, so that fixing a file does not take ten runs of
//! the check. The texts are in the two passes (`project.rs`): `document.rs`, `key_check.rs`, and the files below `job/`.

use std::fmt;
use std::ops::Range;

use crate::parse_error::message_text;

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as messages show it: `jobs/export.toml`.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of the file, as messages show it.
    pub path: String,
    /// The byte range that is wrong.
    pub span: Range<usize>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// A few words to print under the marked text.
    pub label: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl SourceFile {
    /// A file and its text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    /// The line and the column, in characters, of a byte; both are counted from 1.
    ///
    /// ```
    /// use refrain_core::project::SourceFile;
    ///
    /// let source = SourceFile::new("jobs/export.toml", "schedule = \"@daily\"\ntimout = \"5m\"\n");
    /// assert_eq!(source.position(20), (2, 1));
    /// ```
    pub fn position(&self, byte: usize) -> (usize, usize) {
        self.positions().of(byte)
    }

    /// The starts of its lines, for computing many positions: each costs no more than its own line.
    pub fn positions(&self) -> Positions<'_> {
        let after_breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(after_breaks.map(|(at, _)| at + 1)).collect();
        Positions { text: &self.text, starts }
    }
}

/// The starts of the lines of a file.
#[derive(Debug)]
pub struct Positions<'s> {
    text: &'s str,
    starts: Vec<usize>,
}

impl Positions<'_> {
    /// The line and the column, in characters, of a byte; both are counted from 1.
    pub fn of(&self, byte: usize) -> (usize, usize) {
        let line = self.line(byte);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let end = self.text.ceil_char_boundary(byte.min(self.text.len()));
        (line, self.text.get(start..end).unwrap_or_default().chars().count() + 1)
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).max(1)
    }

    /// The byte range of a line without its line break; `None` if the file has no such line.
    pub fn bytes_of(&self, line: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(line.checked_sub(1)?)?;
        let text = self.text.get(start..)?;
        let length = text.find('\n').unwrap_or(text.len());
        let is_windows = text.get(..length).is_some_and(|text| text.ends_with('\r'));
        Some(start..start + length - usize::from(is_windows))
    }
}

impl Problem {
    pub(crate) fn new(
        path: &str,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Problem {
        let (message, label) = (message_text(&message.into()), message_text(&label.into()));
        Problem { path: path.to_owned(), span, message, label, help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Problem {
        Problem { help: Some(message_text(&help.into())), ..self }
    }

    /// The problem as plain lines; `source` is its file.
    pub fn print(&self, source: &SourceFile) -> String {
        let (line, column) = source.position(self.span.start);
        let mut text = format!("{}:{line}:{column}: {}\n  {}", self.path, self.message, self.label);
        if let Some(help) = &self.help {
            text.push_str("\n  help: ");
            text.push_str(help);
        }
        text
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
