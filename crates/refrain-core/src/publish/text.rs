//! Statements of a publish.
