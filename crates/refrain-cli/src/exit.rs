//! How a command can end, and its exit code.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use refrain::admin::ScopeError;
use refrain::core::project::Positions;
use refrain::core::redact::Redactor;
use refrain::project::ProjectError;

use crate::output::ProblemLine;
use crate::problems::{draw, in_order};

/// How a command ended; the worst of many is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// It is done, now or before.
    Done,
    /// Something failed, or something was found.
    Failed,
    /// The caller must change something: the command, a file, a permission or a URL.
    Usage,
    /// An operator must decide.
    Waits,
    /// The store is busy, full or unreachable; the same command may succeed later.
    Unavailable,
    /// It took too long.
    TimedOut,
    /// A signal stopped it.
    Interrupted,
    /// The exit code of a command that was executed for the caller.
    OfCommand(u8),
}

impl Exit {
    /// What a command that was executed for the caller ended with.
    pub(crate) fn of_command(code: u8) -> Exit {
        if code == 0 { Exit::Done } else { Exit::OfCommand(code) }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waits => 4,
            Exit::Unavailable => 75,
            Exit::TimedOut => 124,
            Exit::Interrupted => 130,
            Exit::OfCommand(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The library refused or failed.
    #[error(transparent)]
    Refrain(#[from] refrain::Error),
    /// A scope of a window could not be run; those before it were, and are reported.
    #[error(transparent)]
    Scope(ScopeError),
    /// The project cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", .path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The request is invalid; the text says what to do.
    #[error("{0}")]
    Refused(String),
    /// The directory of the store cannot be created.
    #[error("the directory {path} cannot be created: {source}\n  create it, or name another store with --store", path = .path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Nothing is done before an operator has confirmed; the text says how.
    #[error("{0}")]
    Undecided(String),
    /// There is no store to read.
    #[error("there is no store at {0}\n  check the URL; `refrain run`, `tick` and `migrate` create a store")]
    NoStore(String),
    /// The result cannot be written.
    #[error("the result cannot be written: {0}")]
    Output(io::Error),
    /// No signal handler could be installed, so the command could not be stopped cleanly.
    #[error("no signal handler can be installed: {0}")]
    Signals(io::Error),
}

impl CliError {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Refrain(error) | Self::Project(ProjectError::Refused(error)) => of_error(error),
            Self::Scope(ScopeError { error, .. }) => of_error(error),
            Self::Undecided(_) => Exit::Waits,
            Self::Output(_) | Self::Signals(_) => Exit::Failed,
            Self::Project(_)
            | Self::Write { .. }
            | Self::Refused(_)
            | Self::Directory { .. }
            | Self::NoStore(_) => Exit::Usage,
        }
    }

    /// The problems in files, drawn at their lines.
    pub(crate) fn drawn(&self) -> Option<String> {
        match self {
            Self::Project(ProjectError::Problems(problems)) => Some(draw(problems)),
            _ => None,
        }
    }

    /// Hides the values that the files of an invalid project take from the environment.
    pub(crate) fn redactor(&self) -> Option<&Redactor> {
        match self {
            Self::Project(ProjectError::Problems(problems)) => Some(&problems.redactor),
            _ => None,
        }
    }

    /// The problems in files, for programs.
    pub(crate) fn problems(&self) -> Vec<ProblemLine<'_>> {
        let Self::Project(ProjectError::Problems(problems)) = self else { return Vec::new() };
        let positions: BTreeMap<&str, Positions<'_>> =
            problems.sources.iter().map(|source| (source.path.as_str(), source.positions())).collect();
        let lines = in_order(problems).into_iter().map(|problem| {
            let positions = positions.get(problem.path.as_str());
            let (line, column) = positions.map_or((1, 1), |positions| positions.of(problem.span.start));
            ProblemLine {
                path: &problem.path,
                line,
                column,
                message: &problem.message,
                label: &problem.label,
                help: problem.help.as_deref(),
            }
        });
        lines.collect()
    }
}

fn of_error(error: &refrain::Error) -> Exit {
    match error {
        error if error.is_for_a_person() => Exit::Waits,
        error if error.is_transient() => Exit::Unavailable,
        error if error.is_usage() => Exit::Usage,
        _ => Exit::Failed,
    }
}

impl From<refrain::core::ParseError> for CliError {
    fn from(error: refrain::core::ParseError) -> CliError {
        CliError::Refrain(error.into())
    }
}
