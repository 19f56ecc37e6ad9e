//! What is wrong with a project, where, and what to write instead.
//!
//! A problem points at bytes of a file, so that a terminal can underline them and an editor can mark them; it
//! prints itself as plain lines for everyone else. Reading a project gives all of its problems at once: whoever
//! mends a file should not have to run the check ten times.

use std::fmt;
use std::ops::Range;

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What people call it: `jobs/export.toml`.
    pub path: String,
    /// What stands in it.
    pub text: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as people call it.
    pub path: String,
    /// The bytes of it that are wrong.
    pub span: Range<usize>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The same in a few words, to stand under the offending text.
    pub label: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Source {
    /// A file and its text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    /// The line and the column, in characters, of a byte; both are counted from 1.
    ///
    /// ```
    /// use refrain_core::project::Source;
    ///
    /// let source = Source::new("jobs/export.toml", "schedule = \"@daily\"\ntimout = \"5m\"\n");
    /// assert_eq!(source.position(20), (2, 1));
    /// ```
    pub fn position(&self, byte: usize) -> (usize, usize) {
        let before: String =
            self.text.char_indices().take_while(|(at, _)| *at < byte).map(|(_, c)| c).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

impl Problem {
    /// The problem as plain lines; `source` is the file it lies in.
    pub fn print(&self, source: &Source) -> String {
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
