//! Jobs that a process which serves has left out, because their files are wrong: said in the log, and to a machine that asks.
//!
//! One wrong file stops its own job and no other, so the process is ready all the same; but a person must be able to see it
//! without reading a log. The name of a file may be anything, and who asks may sit at a terminal.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use refrain::Project;

use crate::exit::Fault;
use crate::output::{ProblemLine, harmless};
use crate::problems::TOLD_MAX;

/// The files of jobs that are left out at present.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut(Arc<RwLock<Vec<String>>>);

impl LeftOut {
    /// Logs what is wrong with the jobs that a project leaves out, and remembers their files.
    pub(crate) fn say(&self, project: &Project) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = project.left_out_files();
        if let Some(problems) = project.left_out() {
            log(&Fault::Project(refrain::ProjectError::Problems(problems.clone())));
        }
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files().iter().try_for_each(|file| writeln!(f, "left out, for it is wrong: {}", harmless(file)))
    }
}

/// Logs what is wrong with files, up to a limit.
pub(crate) fn log(fault: &Fault) {
    let problems = fault.problems();
    for problem in problems.iter().take(TOLD_MAX) {
        let ProblemLine { path, line, column, message, label, help } = problem;
        tracing::error!(file = path, line, column, problem = message, label, help, "a file is wrong");
    }
    let others = problems.len().saturating_sub(TOLD_MAX);
    if others > 0 {
        tracing::error!(
            others,
            "more is wrong with files than is told here; all of it: refrain check --json"
        );
    }
}
