//! Rows of a query, brought into a table.

pub(crate) mod surrogate;
