//! Prepares the SQL of a job file for a database: names become typed arguments with the values of a run.

pub(crate) mod arguments;
pub(crate) mod context;
pub(crate) mod values;
