//! Jobs that `serve` ignores because their files are invalid: in the log, and in the answer of `/readyz`.
//!
//! An invalid file stops its own job and no other, so the process is ready all the same; but an operator must be able to
//! see it without reading a log. File names are escaped, since the answer may be shown on a terminal.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use refrain::project::Project;

use crate::exit::CliError;
use crate::output::{ProblemLine, harmless};
use crate::problems::SHOWN_MAX;

/// The files of the jobs that are ignored now.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut(Arc<RwLock<Vec<String>>>);

impl LeftOut {
    /// Logs the problems of the ignored jobs of a project, and remembers their files.
    pub(crate) fn say(&self, project: &Project) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = project.left_out_files();
        if let Some(problems) = project.left_out() {
            log(&CliError::Project(refrain::project::ProjectError::Problems(problems.clone())));
        }
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files()
            .iter()
            .try_for_each(|file| writeln!(f, "ignored, because it is invalid: {}", harmless(file)))
    }
}

/// Logs problems in files, up to a limit.
pub(crate) fn log(fault: &CliError) {
    let problems = fault.problems();
    for problem in problems.iter().take(SHOWN_MAX) {
        let ProblemLine { path, line, column, message, label, help } = problem;
        tracing::error!(file = path, line, column, problem = message, label, help, "a file is invalid");
    }
    let others = problems.len().saturating_sub(SHOWN_MAX);
    if others > 0 {
        tracing::error!(
            others,
            "more problems in files are not listed here; all of them: refrain check --json"
        );
    }
}
