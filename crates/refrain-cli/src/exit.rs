//! How a command can end, and the number that says so.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It is done, now or before.
    Done = 0,
    /// Something failed, or something was found.
    Failed = 1,
    /// The person who asked must change something.
    Usage = 2,
    /// The store is busy, full or away; the same may succeed later.
    Unavailable = 75,
    /// A signal ended it.
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The library said no.
    #[error(transparent)]
    Refrain(#[from] refrain::Error),
    /// The directory of the store cannot be made.
    #[error("the directory {path} cannot be made: {source}\n  make it, or name another store with --store", path = .path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing to look at.
    #[error(
        "there is no store at {0}\n  check the address; a run, a tick or `refrain migrate` makes a store"
    )]
    NoStore(String),
    /// The result cannot be written.
    #[error("the result cannot be written: {0}")]
    Output(io::Error),
    /// Signals cannot be heard, so the command could not be stopped cleanly.
    #[error("signals cannot be heard: {0}")]
    Signals(io::Error),
}

impl Fault {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Refrain(error) if error.is_transient() => Exit::Unavailable,
            Self::Refrain(error) if error.is_usage() => Exit::Usage,
            Self::Refrain(_) | Self::Output(_) | Self::Signals(_) => Exit::Failed,
            Self::Directory { .. } | Self::NoStore(_) => Exit::Usage,
        }
    }
}

impl From<refrain::core::ParseError> for Fault {
    fn from(error: refrain::core::ParseError) -> Fault {
        Fault::Refrain(error.into())
    }
}
