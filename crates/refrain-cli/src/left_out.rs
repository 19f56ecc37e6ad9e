//! Jobs that a process which serves has left out, because their files are wrong: said in the log, and to a machine that asks.
//!
//! One wrong file stops its own job and no other, so the process is ready all the same; but a person must be able to see it
//! without reading a log.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use refrain::Project;

use crate::exit::Fault;
use crate::output::ProblemLine;

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
        self.files().iter().try_for_each(|file| writeln!(f, "left out, for it is wrong: {file}"))
    }
}

/// Logs everything that is wrong with files.
pub(crate) fn log(fault: &Fault) {
    for problem in fault.problems() {
        let ProblemLine { path, line, column, message, label, help } = problem;
        tracing::error!(file = path, line, column, problem = message, label, help, "a file is wrong");
    }
}
