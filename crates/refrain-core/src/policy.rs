//! Policies: the decisions about retries, overlap, alarms and redone work.
//!
//! Each is a value or a pure function that the engine asks. The modules are re-exported at the crate root.

pub mod alarm;
pub mod person;
pub mod redo;
pub mod retry;
pub mod search;
pub mod spike;
pub mod while_running;
