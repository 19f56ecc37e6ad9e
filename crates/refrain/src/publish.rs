//! Writes rows of a query or of units into a table or into files, all of them at one instant.
//!
//! Rows are staged in a temporary table with the column types of their target, and checked there without locks. Then one
//! transaction, which holds the fence of the run, moves them to the target. The rows that a window owns are replaced, never
//! added to. The core makes the statements; this module executes them.

pub(crate) mod comparison;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod query_rows;
pub(crate) mod record;
pub(crate) mod writer;
