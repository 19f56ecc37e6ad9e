//! The supervisor of commands: a separate process between the worker and the command.
//!
//! It survives the worker, and no process of the command survives it: when the lease is not renewed in time, it ends the
//! command with everything the command started, so a retry never runs beside the attempt before it.

pub(crate) mod client;
pub(crate) mod pool;
pub(crate) mod protocol;
pub(crate) mod supervisor;
