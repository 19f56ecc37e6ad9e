//! A run on one line: what `status`, `runs` and `show` print.

use std::fmt;

use anstyle::{AnsiColor, Style};
use refrain::admin::{RunStatus, RunSummary};
use serde::Serialize;

use crate::output::harmless;

/// A run on one line, or as an object.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct RunLine<'r>(pub(crate) &'r RunSummary);

impl fmt::Display for RunLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunSummary { name, record: run, status, .. } = self.0;
        write!(f, "{} {}  {}", Sign(*status), harmless(name), run.standing.node())?;
        if self.0.is_late {
            write!(f, ", late")?;
        }
        if self.0.is_outdated {
            write!(f, ", outdated")?;
        }
        if self.0.needs_a_person() {
            write!(f, ", an operator must decide")?;
        }
        if run.attempt > 1 {
            write!(f, ", attempt {}", run.attempt)?;
        }
        match (run.again_at(), run.ended_at) {
            (Some(at), _) => write!(f, ", again at {at:.0}")?,
            (None, Some(at)) if !run.standing.is_open() => write!(f, ", {at:.0}")?,
            _ => {}
        }
        match &run.message {
            Some(message) => write!(f, ": {}", harmless(message)),
            None => Ok(()),
        }
    }
}

/// The status of a run as one character; its shape alone tells it, without its colour.
pub(crate) struct Sign(pub(crate) RunStatus);

impl Sign {
    fn character(&self) -> char {
        match self.0 {
            RunStatus::Done => '●',
            RunStatus::Outdated => '○',
            RunStatus::Skipped => '–',
            RunStatus::Cancelled => '⊘',
            RunStatus::Waiting => '◔',
            RunStatus::Due => '·',
            RunStatus::Running => '▶',
            RunStatus::Late => '!',
            RunStatus::Partial => '◐',
            RunStatus::Failed => '✗',
            // A status of a later version of the library.
            _ => '?',
        }
    }

    fn style(&self) -> Style {
        let colour = match self.0 {
            RunStatus::Done => AnsiColor::Green,
            RunStatus::Outdated | RunStatus::Skipped | RunStatus::Cancelled => AnsiColor::BrightBlack,
            RunStatus::Waiting | RunStatus::Due | RunStatus::Running => AnsiColor::Cyan,
            RunStatus::Late | RunStatus::Partial => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        colour.on_default()
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.style();
        write!(f, "{style}{}{style:#}", self.character())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_status_has_a_sign_of_its_own() {
        let signs: BTreeSet<char> = RunStatus::ALL.iter().map(|status| Sign(*status).character()).collect();
        assert_eq!(signs.len(), RunStatus::ALL.len());
        assert!(!signs.contains(&'?'));
    }
}
