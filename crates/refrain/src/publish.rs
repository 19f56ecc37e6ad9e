//! Rows of a query or of units, brought into a table or into files, whole and at one instant.
//!
//! Rows are staged in a temporary table that has the types of the table they are meant for, and checked there, while nobody
//! waits; then, in a transaction that holds the fence of the run, they take their place. What a window owns is replaced,
//! never added to. The statements are made in the core; here they are executed.

pub(crate) mod comparison;
pub(crate) mod content;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod record;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod surrogate;
pub(crate) mod table;
pub(crate) mod writer;
