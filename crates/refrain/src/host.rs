//! The process and its user: what a binary that executes commands calls at the beginning of `main`.

pub use crate::process::{is_root, keep_memory_private, user_id};
pub use crate::supervision::supervisor::supervise;
