//! What jobs of files do: run a command, execute statements.

pub(crate) mod binds;
pub(crate) mod command;
pub(crate) mod environment;
pub(crate) mod sql;
pub(crate) mod values;
