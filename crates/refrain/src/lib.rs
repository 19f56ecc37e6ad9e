//! Run it again. Nothing happens twice.
//!
//! Refrain is a scheduler, worker and ledger for jobs that will run more than once. This crate is the library
//! that the `refrain` binary is made of; what it decides by is [`core`], pure values without I/O.
//!
//! # Layout
//!
//! - [`core`]: keys, windows, schedules, catch-up, states, retries. Begin with [`core::tick`].
#![forbid(unsafe_code)]

pub use refrain_core as core;
pub use refrain_core::key;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
