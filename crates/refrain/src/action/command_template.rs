//! The command of a job file, from which the command of each attempt is made.

use std::path::PathBuf;

use refrain_core::redact::Redactor;
use refrain_core::template::arguments;
use refrain_core::{Template, Values, Zone};

use super::command::{Command, Interrupted};
use super::environment::environment_of;
use crate::run::{JobError, Run};

/// What all commands of a job have in common. `argv` is empty if only its units have commands.
#[derive(Debug, Clone)]
pub(crate) struct CommandTemplate {
    pub(crate) argv: Vec<Template>,
    /// Names of the worker's variables that a command also gets.
    pub(crate) inherit: Vec<String>,
    /// The folder of the project.
    pub(crate) directory: PathBuf,
    pub(crate) interrupted: Interrupted,
    /// The zone in which the day of a window is named.
    pub(crate) zone: Zone,
    pub(crate) redactor: Redactor,
}

impl CommandTemplate {
    /// The command of one attempt, with the values of its run.
    pub(crate) fn command(&self, run: &Run, values: &Values) -> Result<Command, JobError> {
        let argv = arguments(&self.argv, values).map_err(|error| JobError::for_good(error.to_string()))?;
        Ok(Command {
            argv,
            environment: environment_of(run, &self.zone),
            inherit: self.inherit.clone(),
            directory: self.directory.clone(),
            interrupted: self.interrupted,
            redactor: self.redactor.clone(),
        })
    }
}
