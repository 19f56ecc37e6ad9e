//! What a worker and a supervisor say to each other, over a pair of sockets.
//!
//! The worker says one line of [`Orders`], then a number each time its lease was renewed: up to when it is good. The end of
//! what it says is the word to end, whether it was meant so or the worker is dead. The supervisor says [`Answer`]s, one a
//! line.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// What is to be executed, and how.
#[derive(Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) argv: Vec<String>,
    /// Variables that are passed on as they are.
    pub(super) inherited: Vec<(OsString, OsString)>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: OsString,
    /// How long it has between the wish to end and the end, in milliseconds.
    pub(super) grace: u64,
    /// Up to when the lease is good, in milliseconds since the machine was started.
    pub(super) until: u64,
}

/// What a supervisor says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is there, and nothing has begun.
    Ready,
    /// The command has begun.
    Started { process: u32 },
    /// The command could not begin.
    NotStarted { fault: Fault, errno: Option<i32>, said: String },
    /// The lease had run out before the command could begin.
    TooLate,
    /// The command has ended, and so has everything that it had started.
    Ended { end: End, why: Why },
}

/// What was wrong with a command that could not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    Directory,
    Program,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Why {
    /// By itself.
    Itself,
    /// It was told to.
    Told,
    /// Nobody said in time that the lease was renewed.
    Silence,
}
