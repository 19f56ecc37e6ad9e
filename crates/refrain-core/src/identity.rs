//! Identity: names, keys and the ids derived from them.
//!
//! A unit of work is recognised by its key, so every rule about names, escaping, hashing and content comparison is in this
//! folder. The modules are re-exported at the crate root.

pub mod content;
pub mod encoding;
pub mod id;
pub mod key;
pub mod name;
pub mod run_name;
pub mod surrogate;
