//! A progress line for long work; only on a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::output::{Output, Talk, shown};

/// How often the line is rewritten.
const EVERY: Duration = Duration::from_millis(100);

/// The line; dropping it erases it.
pub(crate) struct ProgressLine {
    is_shown: bool,
    last: Option<Instant>,
}

impl ProgressLine {
    pub(crate) fn begin(output: Output) -> ProgressLine {
        ProgressLine { is_shown: output.talk == Talk::Said && io::stderr().is_terminal(), last: None }
    }

    /// Shows the progress.
    pub(crate) fn show(&mut self, words: impl Display) {
        let is_time = self.last.is_none_or(|last| last.elapsed() >= EVERY);
        if self.is_shown && is_time {
            self.last = Some(Instant::now());
            drop(write!(io::stderr().lock(), "\r\x1b[K{}", shown(&words.to_string())));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.last.is_some() {
            drop(write!(io::stderr().lock(), "\r\x1b[K"));
        }
    }
}
