//! Run it again. Nothing happens twice.

pub use refrain_core as core;
