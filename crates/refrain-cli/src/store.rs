//! Which store a command means, and how it is opened.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use refrain::{Opening, Refrain};

use crate::built_in;
use crate::exit::Fault;
use crate::output::Output;

const DEFAULT: &str = "sqlite:.refrain/refrain.db";
const DEFAULT_DIRECTORY: &str = ".refrain";

/// A store by its address and project, as they were typed.
pub(crate) struct Named {
    pub(crate) store: Option<String>,
    pub(crate) project: String,
    pub(crate) output: Output,
}

impl Named {
    /// The address as it was typed; it may hold a password.
    pub(crate) fn address(&self) -> &str {
        self.store.as_deref().unwrap_or(DEFAULT)
    }

    /// The store, not yet opened, without jobs.
    pub(crate) fn opening(&self) -> Result<Opening, Fault> {
        Ok(Refrain::at(self.address(), &self.project)?)
    }

    /// The store with the jobs that are built in and a place to be in.
    pub(crate) fn prepared(&self) -> Result<Opening, Fault> {
        let opening = built_in::jobs()?.into_iter().fold(self.opening()?, Opening::job);
        if self.store.is_none() {
            self.make_directory()?;
        }
        if opening.is_new() {
            self.output.say(format_args!("making a new store at {}", opening.address()));
        }
        Ok(opening)
    }

    /// Only the one that nobody has named: a mistyped path would make a second, empty store.
    fn make_directory(&self) -> Result<(), Fault> {
        let path = Path::new(DEFAULT_DIRECTORY);
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => self.output.say(format_args!("made the directory {}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Fault::Directory { path: path.to_owned(), source }),
        }
        Ok(())
    }
}
