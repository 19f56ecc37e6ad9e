//! What jobs do that are not written in Rust: run a command, execute statements, publish the rows of queries, process units.
//!
//! A command runs under a supervisor ([`supervise`](crate::host::supervise)), a separate process that survives the worker and ends
//! every process of the command before it exits: a retry never runs beside its predecessor.

mod attempt_log;
pub mod command;
mod command_failure;
pub(crate) mod command_files;
mod command_output;
pub(crate) mod command_template;
pub mod environment;
pub(crate) mod feed;
mod http;
mod output_capture;
mod output_recorder;
pub(crate) mod publish;
pub(crate) mod sql;
